/* SPDX-License-Identifier: MIT */
/* Sections of the default domain, as loop.h wants them; and for subjects whose threads need no preparation. */
#ifndef BENCH_STRUCTURES_PRUDENCE_SECTIONS_H
#define BENCH_STRUCTURES_PRUDENCE_SECTIONS_H

#include <prudence/rcu.h>

static inline void read_begin(void)
{
    prudence_read_lock();
}

static inline void read_end(void)
{
    prudence_read_unlock();
}

static void nothing(void)
{
}

#endif /* BENCH_STRUCTURES_PRUDENCE_SECTIONS_H */
