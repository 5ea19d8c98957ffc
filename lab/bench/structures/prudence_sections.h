/* SPDX-License-Identifier: MIT */
/* Sections of the default domain, for loop.h and routes_family.h. */
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

#endif /* BENCH_STRUCTURES_PRUDENCE_SECTIONS_H */
