/* SPDX-License-Identifier: MIT */
/* Whether memory can be read, without a fault. */
#ifndef SUPPORT_READABLE_H
#define SUPPORT_READABLE_H

#include <sys/syscall.h>
#include <unistd.h>

#include "support/suite.h"

/* Asks the system whether memory is readable. */
static inline bool is_open(const void *memory)
{
    int pipes[2];
    bool open;

    assert_int_equal(pipe(pipes), 0);
    open = syscall(SYS_write, pipes[1], memory, 1) == 1;
    close(pipes[0]);
    close(pipes[1]);
    return open;
}

#endif /* SUPPORT_READABLE_H */
