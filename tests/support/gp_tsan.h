/* SPDX-License-Identifier: MIT */
/*
 * ThreadSanitizer's options for programs that fork while they have threads. A fork holds the node
 * locks of all caches, more than the 64 that the deadlock detector can count, and the child has no
 * threads that could leak.
 */
#ifndef TESTS_SUPPORT_GP_TSAN_H
#define TESTS_SUPPORT_GP_TSAN_H

#if defined(__SANITIZE_THREAD__)
__attribute__((weak)) const char *__tsan_default_options(void); /* several files may have it */
const char *__tsan_default_options(void)
{
    return "detect_deadlocks=0:report_thread_leaks=0:die_after_fork=0";
}
#endif

#endif /* TESTS_SUPPORT_GP_TSAN_H */
