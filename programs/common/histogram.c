/* SPDX-License-Identifier: MIT */
#include "histogram.h"

#include <stdbool.h>
#include <stdlib.h>

uint64_t bucket_value(unsigned bucket, unsigned sub_bits)
{
    unsigned shift = bucket >> sub_bits;
    uint64_t sub = bucket & ((1u << sub_bits) - 1);

    return shift ? (sub + (UINT64_C(1) << sub_bits)) << (shift - 1) : sub;
}

uint64_t buckets_quantile(const uint64_t *counts, unsigned buckets, unsigned sub_bits,
                          uint64_t total, double quantile, uint64_t otherwise)
{
    uint64_t wanted = (uint64_t)(quantile * (double)total), seen = 0;

    for (unsigned i = 0; i < buckets; i++) {
        seen += counts[i];
        if (seen > wanted)
            return bucket_value(i, sub_bits);
    }
    return otherwise;
}

/* ------------------------------------------------------------ one that any thread may record in */

#define SUB_BITS 6
#define BUCKETS  ((64 - SUB_BITS + 1) << SUB_BITS)

struct histogram {
    uint64_t count;
    uint64_t largest;
    uint64_t bucket[BUCKETS];
};

struct histogram *histogram_create(void)
{
    return calloc(1, sizeof(struct histogram));
}

void histogram_record(struct histogram *histogram, uint64_t value)
{
    uint64_t largest = __atomic_load_n(&histogram->largest, __ATOMIC_RELAXED);

    __atomic_fetch_add(&histogram->bucket[bucket_of(value, SUB_BITS)], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&histogram->count, 1, __ATOMIC_RELAXED);
    while (value > largest &&
           !__atomic_compare_exchange_n(&histogram->largest, &largest, value, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

uint64_t histogram_count(const struct histogram *histogram)
{
    return __atomic_load_n(&histogram->count, __ATOMIC_RELAXED);
}

uint64_t histogram_quantile(const struct histogram *histogram, double quantile)
{
    return buckets_quantile(histogram->bucket, BUCKETS, SUB_BITS, histogram->count, quantile,
                            histogram->largest);
}

double histogram_mean_below(const struct histogram *histogram, double quantile)
{
    const uint64_t end = histogram_quantile(histogram, quantile);
    double sum = 0, count = 0;

    for (unsigned i = 0; i < BUCKETS && bucket_value(i, SUB_BITS) <= end; i++) {
        const double width = i + 1 < BUCKETS ? (double)bucket_value(i + 1, SUB_BITS) -
                                                   (double)bucket_value(i, SUB_BITS)
                                             : 1;

        sum += (double)histogram->bucket[i] * ((double)bucket_value(i, SUB_BITS) + (width - 1) / 2);
        count += (double)histogram->bucket[i];
    }
    return count > 0 ? sum / count : 0;
}

void histogram_add(struct histogram *histogram, const struct histogram *from)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        histogram->bucket[i] += from->bucket[i];
    histogram->count += from->count;
    if (from->largest > histogram->largest)
        histogram->largest = from->largest;
}

void histogram_clear(struct histogram *histogram)
{
    *histogram = (struct histogram){0};
}

json_t *histogram_to_json(const struct histogram *histogram)
{
    if (!histogram->count)
        return json_pack("{s:i}", "count", 0);
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "count", (json_int_t)histogram->count, "p50",
                     (json_int_t)histogram_quantile(histogram, 0.5), "p90",
                     (json_int_t)histogram_quantile(histogram, 0.9), "p99",
                     (json_int_t)histogram_quantile(histogram, 0.99), "p99_9",
                     (json_int_t)histogram_quantile(histogram, 0.999), "max",
                     (json_int_t)histogram->largest);
}
