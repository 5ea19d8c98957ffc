/* SPDX-License-Identifier: MIT */
/*
 * A counter of events, as a template: the file that includes this has defined add(number) and
 * sum(). An update adds 1, a lookup asks for the sum. The last thread that ends compares the sum
 * with the total of all additions; a subject that lost some is refused.
 */
#ifndef BENCH_STRUCTURES_COUNTERS_FAMILY_H
#define BENCH_STRUCTURES_COUNTERS_FAMILY_H

#include "subject.h"

#define RUNS 2 /* of each thread: warm-up, and measured run */

static uint64_t added; /* by runs that have ended; atomic */
static unsigned ended; /* number of runs; atomic */

static void fill(uint64_t size)
{
    (void)size;
}

static inline void operate(struct work *work, uint64_t random)
{
    if (is_update(work, random)) {
        add(1);
    } else {
        work->sum += (uint64_t)sum();
        work->found++;
    }
}

static void run(struct work *work)
{
    const uint64_t before = work->operations - work->found;

    run_operations(work, operate);
    __atomic_fetch_add(&added, work->operations - work->found - before, __ATOMIC_RELAXED);
    /* Acquire and release, so that the last thread sees all additions, and none follow. */
    if (__atomic_add_fetch(&ended, 1, __ATOMIC_ACQ_REL) == RUNS * work->threads &&
        (uint64_t)sum() != __atomic_load_n(&added, __ATOMIC_RELAXED))
        subject_refuses("additions were lost");
}

#endif /* BENCH_STRUCTURES_COUNTERS_FAMILY_H */
