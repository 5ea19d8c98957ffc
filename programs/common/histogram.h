/* SPDX-License-Identifier: MIT */
/*
 * Counts of values in buckets that grow with the values: 2^sub_bits buckets for each power of two,
 * and one for each value below 2^sub_bits. A bucket is found without a loop, and is at most a
 * 2^sub_bits-th part as wide as its values are large.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

#include <jansson.h>

/* Returns the number of a value's bucket. */
static inline unsigned bucket_of(uint64_t value, unsigned sub_bits)
{
    unsigned shift;

    if (value < UINT64_C(1) << sub_bits)
        return (unsigned)value;
    shift = 63 - sub_bits - (unsigned)__builtin_clzll(value);
    return ((shift + 1) << sub_bits) + (unsigned)((value >> shift) - (UINT64_C(1) << sub_bits));
}

/* Returns the smallest value of a bucket. */
uint64_t bucket_value(unsigned bucket, unsigned sub_bits);

/* Returns the smallest value of the bucket that contains the quantile, of `total` values, or
 * `otherwise` if they end before. */
uint64_t buckets_quantile(const uint64_t *counts, unsigned buckets, unsigned sub_bits,
                          uint64_t total, double quantile, uint64_t otherwise);

/* ------------------------------------------------------------ one that any thread may record in */

/* Has 64 buckets for each power of two, so a percentile is at most 1.6 % off. */
struct histogram;
struct histogram *histogram_create(void);
void histogram_record(struct histogram *histogram, uint64_t value);
uint64_t histogram_count(const struct histogram *histogram);
uint64_t histogram_quantile(const struct histogram *histogram, double quantile);
/* Returns the mean of the values up to that quantile, as exact as the buckets are; 0 if there
 * are none. */
double histogram_mean_below(const struct histogram *histogram, double quantile);
/* Adds all values of `from`; removes all values. No thread may record in either during that. */
void histogram_add(struct histogram *histogram, const struct histogram *from);
void histogram_clear(struct histogram *histogram);
/* Returns count, p50, p90, p99, p99_9 and max; for an empty one only the count. A new reference. */
json_t *histogram_to_json(const struct histogram *histogram);

#endif /* BENCH_HISTOGRAM_H */
