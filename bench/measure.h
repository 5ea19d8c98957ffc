/* SPDX-License-Identifier: MIT */
/* Clocks, resident memory, and a histogram of latencies. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <jansson.h>

uint64_t clock_ns(clockid_t clock);

static inline uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* Sleeps until now_ns() is `when`. */
void sleep_until_ns(uint64_t when);

/* CPU time of the whole process. */
uint64_t process_cpu_ns(void);

/* Resident bytes of this process now, and the most there ever were (VmHWM). */
uint64_t resident_bytes(void);
uint64_t resident_bytes_peak(void);

/* Buckets grow by 1/64, so that a percentile is at most 1.6 % off. Any thread may record. */
struct histogram;
struct histogram *histogram_create(void);
void histogram_record(struct histogram *histogram, uint64_t value);
uint64_t histogram_count(const struct histogram *histogram);
uint64_t histogram_quantile(const struct histogram *histogram, double quantile);
/* Count, p50, p99, p99_9 and max; of an empty one only the count. A new reference. */
json_t *histogram_to_json(const struct histogram *histogram);

#endif /* BENCH_MEASURE_H */
