/* SPDX-License-Identifier: MIT */
/* Forks by the system call alone, without the C library and its fork handlers. */
#ifndef TESTS_SUPPORT_BARE_FORK_H
#define TESTS_SUPPORT_BARE_FORK_H

#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Arguments other than the flags are NULL. On s390x the stack comes before the flags. */
static inline pid_t bare_fork(void)
{
#ifdef __s390x__
    return (pid_t)syscall(SYS_clone, NULL, SIGCHLD, NULL, NULL, NULL);
#else
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
#endif
}

#endif /* TESTS_SUPPORT_BARE_FORK_H */
