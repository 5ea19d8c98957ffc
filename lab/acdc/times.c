/* SPDX-License-Identifier: MIT */
#include "times.h"

#include <math.h>

const char *const operation_names[OPERATIONS] = {
    "allocate", "free", "defer", "refresh", "global_refresh", "tick", "global_tick", "access",
};

static uint64_t overhead;

/* Takes the smallest of many, because anything that makes one larger is not the measurement's
 * own cost. */
void times_calibrate(void)
{
    overhead = UINT64_MAX;
    for (unsigned i = 0; i < 10000; i++) {
        uint64_t began = cycles(), took = cycles() - began;

        if (took < overhead)
            overhead = took;
    }
}

uint64_t times_overhead(void)
{
    return overhead;
}

/* Returns the bucket; the last one also holds all larger values. */
static unsigned bucket_of_ticks(uint64_t ticks)
{
    unsigned bucket = bucket_of(ticks, TIME_SUB_BITS);

    return bucket < TIME_BUCKETS ? bucket : TIME_BUCKETS - 1;
}

void times_record_each(struct times *times, uint64_t began, uint64_t ended, uint64_t count)
{
    uint64_t ticks = ended - began > overhead ? (ended - began - overhead) / count : 0;

    if (!times->timed || ticks < times->smallest)
        times->smallest = ticks;
    if (ticks > times->largest)
        times->largest = ticks;
    times->timed++;
    times->sum += ticks;
    times->squares += (double)ticks * (double)ticks;
    times->bucket[bucket_of_ticks(ticks)]++;
    times->bucket_sum[bucket_of_ticks(ticks)] += ticks;
}

void times_add(struct times *sum, const struct times *times)
{
    if (times->timed && (!sum->timed || times->smallest < sum->smallest))
        sum->smallest = times->smallest;
    if (times->largest > sum->largest)
        sum->largest = times->largest;
    sum->count += times->count;
    sum->timed += times->timed;
    sum->sum += times->sum;
    sum->squares += times->squares;
    for (unsigned i = 0; i < TIME_BUCKETS; i++) {
        sum->bucket[i] += times->bucket[i];
        sum->bucket_sum[i] += times->bucket_sum[i];
    }
}

double times_mean(const struct times *times)
{
    return times->timed ? (double)times->sum / (double)times->timed : 0;
}

double times_deviation(const struct times *times)
{
    double mean = times_mean(times), count = (double)times->timed, variance;

    if (times->timed < 2)
        return 0;
    variance = (times->squares - count * mean * mean) / (count - 1);
    return variance > 0 ? sqrt(variance) : 0;
}

/* Counts a part of the bucket in which the share ends, at the bucket's mean. */
double times_trimmed_mean(const struct times *times, double share)
{
    double wanted = share * (double)times->timed, left = wanted, sum = 0;

    for (unsigned i = 0; i < TIME_BUCKETS && left > 0; i++) {
        double here = (double)times->bucket[i], taken = here < left ? here : left;

        if (here > 0)
            sum += (double)times->bucket_sum[i] * (taken / here);
        left -= taken;
    }
    return wanted > 0 ? sum / wanted : 0;
}

uint64_t times_quantile(const struct times *times, double quantile)
{
    return buckets_quantile(times->bucket, TIME_BUCKETS, TIME_SUB_BITS, times->timed, quantile,
                            times->largest);
}
