// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Times each pair on all CPUs at once. What interrupts a pair is in its time: callbacks, grace
 * periods, the timer. */
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "bench.h"

/* A histogram has 16 buckets for each power of two, so a figure is at most 1/16 too small. */
#define STEPS   16
#define BUCKETS (60 * STEPS + STEPS)

static u64 times[BUCKETS]; /* of all workers of a run */
static u64 longest;
static DEFINE_MUTEX(merging); /* protects both */

static unsigned int bucket_of(u64 ns)
{
    unsigned int shift;

    if (ns < STEPS)
        return (unsigned int)ns;
    shift = (unsigned int)fls64(ns) - 5;
    return shift * STEPS + (unsigned int)(ns >> shift);
}

/* Returns the least time that the bucket counts. */
static u64 time_of(unsigned int bucket)
{
    unsigned int shift = bucket < 2 * STEPS ? 0 : bucket / STEPS - 1;

    return (u64)(bucket - shift * STEPS) << shift;
}

static void merge(const u64 *mine, u64 most)
{
    unsigned int i;

    mutex_lock(&merging);
    for (i = 0; i < BUCKETS; i++)
        times[i] += mine[i];
    longest = max(longest, most);
    mutex_unlock(&merging);
}

static int do_timed_pairs(struct worker *worker)
{
    const struct subject *subject = worker->subject;
    u64 *mine = kvcalloc(BUCKETS, sizeof(*mine), GFP_KERNEL), most = 0;
    unsigned int i;

    for (i = 0; mine && i < pairs; i++) {
        u64 began = ktime_get_ns(), took;
        char *object = subject->alloc(worker->size);

        if (object) {
            WRITE_ONCE(*object, (char)i);
            subject->release(object);
        } else {
            worker->failed++;
        }
        took = ktime_get_ns() - began;
        mine[bucket_of(took)]++;
        most = max(most, took);
        if (i % 64 == 0)
            cond_resched();
    }
    if (mine)
        merge(mine, most);
    kvfree(mine);
    return 0;
}

/* Returns the time that this many of 10,000 pairs do not exceed, to a bucket. */
static u64 share(unsigned int of_10000)
{
    u64 all = (u64)pairs * worker_count, seen = 0;
    unsigned int i;

    for (i = 0; i < BUCKETS - 1; i++) {
        seen += times[i];
        if (seen * 10000 >= all * of_10000)
            break;
    }
    return time_of(i);
}

static void latency_of(const struct subject *subject, size_t size, unsigned int round)
{
    memset(times, 0, sizeof(times));
    longest = 0;
    if (workers_start(do_timed_pairs, subject, max(size, subject->least), 1))
        return;
    workers_wait();
    workers_end();
    settle();
    pr_info("BENCH {\"run\":\"latency\",\"subject\":\"%s\",\"size\":%zu,\"cpus\":%u,\"round\":%u,"
            "\"pairs\":%u,\"failed\":%llu,\"p50_ns\":%llu,\"p99_ns\":%llu,\"p999_ns\":%llu,"
            "\"p9999_ns\":%llu,\"most_ns\":%llu}\n",
            subject->name, size, worker_count, round, pairs,
            worker_sum(offsetof(struct worker, failed)), share(5000), share(9900), share(9990),
            share(9999), longest);
}

void run_latency(void)
{
    static const size_t sizes[] = {64, 512, 4096};

    subjects_in_turns(sizes, ARRAY_SIZE(sizes), latency_of);
}
