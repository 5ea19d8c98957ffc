/* SPDX-License-Identifier: MIT */
/*
 * Restricts the library to the system calls that a sandbox allows every malloc (ADR 123): mmap,
 * munmap, mremap, madvise, mprotect, futex; write and rt_sigprocmask for a message; and clocks. A
 * message after which the process goes on also needs fstat, except with sandbox=1. In
 * a sandbox the kernel kills a process that makes any other call, and the process cannot ask
 * beforehand. So the library decides by the option sandbox and by how the process uses it:
 *
 *   OS_CALLS_ALL    all calls may be made: the program uses Prudence by name, defers or reads, or
 *                   says sandbox=0
 *   OS_CALLS_PLAIN  few, until the process defers or reads: a plain program on
 *                   libprudence-malloc, after its start
 *   OS_CALLS_FEW    few, whatever the process does: sandbox=1
 *
 * While the library starts, all calls may be made. The word is read without a lock. A thread that
 * has just missed a change behaves as it would have a moment before.
 */
#ifndef OS_POSIX_SYSCALL_POLICY_H
#define OS_POSIX_SYSCALL_POLICY_H

#include "base/atomic.h"
#include "base/base.h"

enum os_calls { OS_CALLS_ALL, OS_CALLS_PLAIN, OS_CALLS_FEW };
extern HIDDEN uint32_t os_calls; /* enum os_calls; atomic */

static inline bool os_calls_are_few(void)
{
    return load_relaxed(&os_calls) != OS_CALLS_ALL;
}

/* Called when the process defers, reads, or wants a thread, and may then need any call. Returns
 * whether all calls may be made, which is false with sandbox=1. Costs one load if they already
 * may. Async-signal-safe. */
bool os_calls_widen_slow(void);
static inline bool os_calls_widen(void)
{
    return likely(load_relaxed(&os_calls) == OS_CALLS_ALL) || os_calls_widen_slow();
}

/* Returns whether the caller is the only thread of the process, as far as can be known without a
 * system call. Threads made by clone() are not counted. Returns false after there was ever
 * another thread (glibc 2.36). */
bool os_is_single_threaded(void);

/* Return the kernel's ids of the caller's thread and process; with few calls, the C library's
 * records of them. */
int os_thread_id(void);
int os_process_id(void);

#endif /* OS_POSIX_SYSCALL_POLICY_H */
