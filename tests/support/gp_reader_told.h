/* SPDX-License-Identifier: MIT */
/*
 * The state of a reader's thread, as the test says instead of the system: set posix_cpu_injected
 * to told_fares.
 */
#ifndef TESTS_SUPPORT_GP_READER_TOLD_H
#define TESTS_SUPPORT_GP_READER_TOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

#define LEAST_HAD 123000000 /* CPU time before the section, ns */

/* The answers about the reader's thread. */
static bool told, wants;
static uint64_t had_more_each_time;
static unsigned looks;

static inline bool told_fares(int thread, bool *wants_cpu, uint64_t *had)
{
    (void)thread;
    *wants_cpu = wants;
    *had = LEAST_HAD + load_relaxed(&looks) * had_more_each_time;
    add_relaxed(&looks, 1);
    return told;
}

static inline void say(bool anything, bool wants_cpu, uint64_t had_more)
{
    told = anything;
    wants = wants_cpu;
    had_more_each_time = had_more;
}

#endif /* TESTS_SUPPORT_GP_READER_TOLD_H */
