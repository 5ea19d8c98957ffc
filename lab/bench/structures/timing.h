/* SPDX-License-Identifier: MIT */
/* Times single operations, one of many, by the cheapest clock. */
#ifndef BENCH_STRUCTURES_TIMING_H
#define BENCH_STRUCTURES_TIMING_H

#include "histogram.h"
#include "measure.h"

struct timing {
    uint64_t operations;
    struct histogram *cycles; /* of the timed operations */
};

#define TIMED_LOOKUPS 64 /* one in this many is timed */
#define TIMED_UPDATES 16

/* Returns 0 if this operation is not timed. */
static inline uint64_t timing_begin(struct timing *timing, unsigned one_in)
{
    return timing->operations++ % one_in ? 0 : cycles();
}

static inline void timing_end(struct timing *timing, uint64_t begun)
{
    if (begun)
        histogram_record(timing->cycles, cycles() - begun);
}

#endif /* BENCH_STRUCTURES_TIMING_H */
