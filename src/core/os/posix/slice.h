/* SPDX-License-Identifier: MIT */
/*
 * Longer time slices (docs/adr/0034). A thread that is preempted while it owns a CPU's caches or
 * holds a lock delays all others until the next turn. So threads ask for a longer slice before they
 * take either. A kernel about to preempt such a thread lets it run on for some microseconds, once,
 * and the thread gives the CPU up when done. In a kernel such threads are not preempted at all
 * (os/kernel/os_lock.h); this is the nearest that Linux offers to a process, since 7.0.
 *
 * The two words are in the thread's own struct rseq. Only the thread, signal handlers on it, and
 * the kernel between two instructions write them, so plain accesses suffice. A system call in a
 * granted slice ends the slice and does no harm.
 */
#ifndef OS_POSIX_SLICE_H
#define OS_POSIX_SLICE_H

#include "base/base.h"

/* True if threads ask. False if the kernel or libc has no slices, and with slice_extension=0. */
extern HIDDEN bool os_slices;

/* Called before this thread takes the first lock or CPU's caches, and after it has released the
 * last. Async-signal-safe; both keep errno. */
void os_slice_ask(void);
void os_slice_done(void);

#endif /* OS_POSIX_SLICE_H */
