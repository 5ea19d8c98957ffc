/* SPDX-License-Identifier: MIT */
/*
 * A counter of events, as a template: the file that includes this has defined add(number) and sum(). An update adds 1, a lookup
 * asks for the sum. At the end each thread compares the sum with what all have added: a way to count that loses something is refused.
 */
#ifndef BENCH_STRUCTURES_COUNTERS_FAMILY_H
#define BENCH_STRUCTURES_COUNTERS_FAMILY_H

#include "subject.h"

static uint64_t added; /* by runs that have ended; atomic */

static void fill(uint64_t size)
{
    (void)size;
}

static void run(struct work *work)
{
    uint64_t mine = 0;

    do {
        for (unsigned i = 0; i < 64; i++) {
            if ((next_random(&work->random) >> 8) % 1024 * 100 < (uint64_t)work->updates * 1024) {
                add(1);
                mine++;
            } else {
                work->sum += (uint64_t)sum();
                work->found++;
            }
        }
        work->operations += 64;
    } while (!__atomic_load_n(work->stop, __ATOMIC_RELAXED));
    __atomic_fetch_add(&added, mine, __ATOMIC_RELAXED);
}

/* Behind a barrier: all runs have ended. */
static void thread_end(void)
{
    if ((uint64_t)sum() != __atomic_load_n(&added, __ATOMIC_RELAXED))
        subject_refuses("additions were lost");
}

#define COUNTER_SUBJECT(name, origin)                                                              \
    {                                                                                              \
        name, origin, start, nothing, fill, nothing, run, thread_end                               \
    }

#endif /* BENCH_STRUCTURES_COUNTERS_FAMILY_H */
