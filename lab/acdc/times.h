/* SPDX-License-Identifier: MIT */
/*
 * Times of operations. A timed operation is between two reads of the time-stamp counter, each
 * fenced on both sides, so that nothing of it runs outside and nothing else inside; the cost of an
 * empty measurement is subtracted. Machines other than x86 use the monotonic clock, in nanoseconds.
 */
#ifndef ACDC_TIMES_H
#define ACDC_TIMES_H

#include <stdint.h>

#include "histogram.h"
#include "measure.h"

enum operation {
    OP_ALLOCATE,
    OP_FREE,
    OP_DEFER,
    OP_REFRESH,
    OP_GLOBAL_REFRESH,
    OP_TICK,
    OP_GLOBAL_TICK,
    OP_ACCESS,
    OPERATIONS
};

extern const char *const operation_names[OPERATIONS];

#if defined(__x86_64__)
#define TICKS_ARE_CYCLES 1 /* cycles() counts those of the time-stamp counter, at one speed */
#else
#define TICKS_ARE_CYCLES 0
#endif

#define TIME_SUB_BITS 3
#define TIME_BUCKETS  (44 << TIME_SUB_BITS) /* up to 2^46 ticks, at 1/8 of a power of two */

/* The times of one thread for of one operation, or the sum over all threads. */
struct times {
    uint64_t count; /* operations, timed or not */
    uint64_t timed;
    uint64_t sum, smallest, largest; /* ticks */
    double squares;
    uint64_t bucket[TIME_BUCKETS];
    uint64_t bucket_sum[TIME_BUCKETS];
};

/* Measures the cost of an empty measurement; call it once, before the first. */
void times_calibrate(void);
uint64_t times_overhead(void);

/* Records the time of each of `count` operations that were timed together. */
void times_record_each(struct times *times, uint64_t began, uint64_t ended, uint64_t count);

static inline void times_record(struct times *times, uint64_t began, uint64_t ended)
{
    times_record_each(times, began, ended, 1);
}

void times_add(struct times *sum, const struct times *times);
double times_mean(const struct times *times);
double times_deviation(const struct times *times);
/* Returns the mean of the fastest `share`, to leave out interrupted operations. */
double times_trimmed_mean(const struct times *times, double share);
/* Returns a value that is at most an eighth too small. */
uint64_t times_quantile(const struct times *times, double quantile);

#endif /* ACDC_TIMES_H */
