/* SPDX-License-Identifier: MIT */
/*
 * Whether this user may lock memory: that depends on the user's rights and on RLIMIT_MEMLOCK.
 */
#ifndef SUPPORT_LOCKABLE_H
#define SUPPORT_LOCKABLE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Tries it in a child: all of the process, and `more` bytes that it maps later. Says so if that
 * fails. */
static inline bool memory_is_lockable(size_t more)
{
    pid_t child;
    int status;

    fflush(NULL);
    child = fork();
    if (!child)
        _exit(mlockall(MCL_CURRENT | MCL_FUTURE) ||
              mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
                  MAP_FAILED);
    if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
        !WEXITSTATUS(status))
        return true;
    printf(
        "skipped: this user may not lock %zu bytes more than the process has: run it as root, or "
        "with a larger `ulimit -l`\n",
        more);
    return false;
}

#endif
