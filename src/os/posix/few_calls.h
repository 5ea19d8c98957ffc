/* SPDX-License-Identifier: MIT */
/*
 * Whether the library keeps to the system calls that a sandbox allows every malloc (ADR 123): mmap, munmap, mremap, madvise,
 * mprotect, futex; write and rt_sigprocmask for a message; and clocks. The kernel kills a process that makes another one in a
 * sandbox, and nobody can ask beforehand. So this is decided from what the process does, and by the option sandbox:
 *
 *   OS_CALLS_ALL    all calls may be made: the program uses Prudence by name, defers or reads, or says sandbox=0
 *   OS_CALLS_PLAIN  few, until the process defers or reads: a plain program on libprudence-malloc, after its start
 *   OS_CALLS_FEW    few, whatever the process does: sandbox=1
 *
 * While the library starts all calls may be made. The word is read without a lock: a thread that has just missed a change
 * behaves as if it had come a moment earlier.
 */
#ifndef OS_POSIX_FEW_CALLS_H
#define OS_POSIX_FEW_CALLS_H

#include "base/atomic.h"
#include "base/base.h"

enum os_calls { OS_CALLS_ALL, OS_CALLS_PLAIN, OS_CALLS_FEW };
extern HIDDEN uint32_t os_calls; /* enum os_calls; atomic */

static inline bool os_calls_are_few(void)
{
    return load_relaxed(&os_calls) != OS_CALLS_ALL;
}

/* What follows may need any call: the process defers, reads, or wants a thread. Returns whether such calls may be made: false
 * with sandbox=1. Costs a load where they may. Async-signal-safe. */
bool os_calls_widen_slow(void);
static inline bool os_calls_widen(void)
{
    return likely(load_relaxed(&os_calls) == OS_CALLS_ALL) || os_calls_widen_slow();
}

/* Whether the caller is the only thread of the process, as far as that is known without a system call: threads that clone() made
 * are not counted, and false once there was another thread (glibc 2.36). */
bool os_is_single_threaded(void);

/* The caller's thread and process, as the kernel numbers them; with few calls as the C library has noted them. */
int os_thread_id(void);
int os_process_id(void);

#endif /* OS_POSIX_FEW_CALLS_H */
