/* SPDX-License-Identifier: MIT */
/* Waits for a lock that is normally held for some tens of nanoseconds. The waiting thread spins
 * briefly and then sleeps, because a preempted holder may need this CPU. */
#ifndef TABLES_CONTENTION_H
#define TABLES_CONTENTION_H

#include "os/os.h"

#define CONTENTION_SPINS    100
#define CONTENTION_SLEEP_NS 50000

static inline void contention_pause(unsigned *tries)
{
    if (++*tries % CONTENTION_SPINS)
        os_relax();
    else
        os_sleep_ns(CONTENTION_SLEEP_NS);
}

#endif /* TABLES_CONTENTION_H */
