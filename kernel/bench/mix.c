// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Uses one cache of each allocator in file-like, socket-like and tree-rebalancing ways, and reports
 * the counters (Figures 7 to 11 of the paper).
 */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/prudence.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "bench.h"

/*
 * A workload's use of one cache. Live objects come and go in batches; a share of those that go is
 * deferred and the rest is freed. In the paper's Figure 12, PostgreSQL defers 4.4 % of frees and
 * Postmark 24.4 %. All subjects get the same requests in the same order on each CPU.
 */
static const struct mix {
    const char *name;
    size_t size;
    unsigned int live;     /* most live objects per CPU */
    unsigned int burst;    /* allocated or released in a row */
    unsigned int deferred; /* percentage of releases */
} mixes[] = {
    {"file", 256, 4000, 200, 24}, /* inodes, dentries and files, opened and closed in bunches */
    {"socket", 192, 1000, 8, 14}, /* one connection after another */
    {"tree", 64, 6000, 60, 45},   /* nodes replaced when a tree is balanced */
};

static const struct mix *mix;
static struct prudence_cache *our_cache;
struct kmem_cache *slub_cache;

static void slub_mix_free(struct rcu_head *head)
{
    kmem_cache_free(slub_cache, container_of(head, struct headed, rcu));
}

static void mix_release(bool ours, void *object, bool deferred)
{
    struct headed *headed = object;

    if (ours && deferred)
        prudence_cache_free_deferred(our_cache, object);
    else if (ours)
        prudence_cache_free(our_cache, object);
    else if (deferred && !strcmp(subject_name, "call_rcu"))
        call_rcu(&headed->rcu, slub_mix_free);
    else if (deferred)
        kfree_rcu(headed, rcu); /* kfree_rcu accepts objects of kmem_cache_alloc */
    else
        kmem_cache_free(slub_cache, object);
}

static u32 next_random(u32 *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static int do_mix(struct worker *worker)
{
    bool ours = subject_is_ours(worker->subject);
    void **live = vmalloc(array_size(mix->live, sizeof(*live)));
    u32 random = worker->cpu + 1;
    unsigned int count = 0, i;
    u64 start = ktime_get_ns();

    while (live && worker->done < pairs) {
        unsigned int target = next_random(&random) % mix->live;

        for (i = 0; i < mix->burst && count < target; i++) {
            void *object = ours ? prudence_cache_alloc(our_cache, GFP_KERNEL)
                                : kmem_cache_alloc(slub_cache, GFP_KERNEL);

            if (!object)
                break;
            live[count++] = object;
            WRITE_ONCE(worker->done, worker->done + 1);
        }
        for (i = 0; i < mix->burst && count > target; i++) {
            unsigned int victim = next_random(&random) % count;

            mix_release(ours, live[victim], next_random(&random) % 100 < mix->deferred);
            live[victim] = live[--count];
        }
        WRITE_ONCE(worker->live, count);
        do
            cond_resched();
        while (ktime_get_ns() - start < worker->done * pace);
    }
    smp_store_release(&worker->rests, true); /* publishes the figures */
    while (!READ_ONCE(stop))
        schedule_timeout_interruptible(1);
    while (count)
        mix_release(ours, live[--count], false);
    vfree(live);
    return 0;
}

/* Figures of a run, except counters. */
struct mix_run {
    u64 fragmentation, fragmentation_mean; /* f_t x 1000, at the end and on average */
    u64 ms, grace_periods;
};

/* Figures of a cache at one time. */
struct mix_look {
    u64 slabs, live, latent, cached; /* latent and cached only for Prudence */
    u64 fragmentation;               /* f_t x 1000 */
};

static size_t mix_slab_bytes; /* of the running subject */

static void mix_look(bool ours, struct mix_look *look)
{
    struct prudence_cache_stats stats = {};

    if (ours)
        prudence_cache_stats(our_cache, &stats);
    *look = (struct mix_look){
        .slabs = ours ? stats.slabs_now : (u64)slub_slabs_now(),
        .live = worker_sum(offsetof(struct worker, live)),
        .latent = stats.objects_latent,
        .cached = stats.objects_cached,
    };
    if (look->live)
        look->fragmentation =
            div64_u64(look->slabs * mix_slab_bytes * 1000, look->live * mix->size);
}

/* Returns the size of SLUB's slabs, taken from the block of one object. */
static size_t slub_slab_bytes(void)
{
    void *object = kmem_cache_alloc(slub_cache, GFP_KERNEL);
    size_t bytes = object ? PAGE_SIZE << compound_order(virt_to_head_page(object)) : 0;

    if (object)
        kmem_cache_free(slub_cache, object);
    return bytes;
}

/* Returns the number of grace periods that began between two snapshots. */
static u64 grace_periods(unsigned long before, unsigned long after)
{
    return (after - before) >> 2; /* the lowest two bits are the state */
}

static void mix_print(const char *subject, unsigned int round, bool counted,
                      const struct prudence_cache_stats *stats, const struct mix_look *peak,
                      const struct mix_run *ran)
{
    pr_info(
        "BENCH {\"run\":\"mix\",\"mix\":\"%s\",\"subject\":\"%s\",\"size\":%zu,\"cpus\":%u,"
        "\"pace\":%u,\"round\":%u,\"counted\":%s,\"allocations\":%llu,\"hits\":%llu,"
        "\"hits_after_merge\":%llu,\"refills\":%llu,\"flushes\":%llu,"
        "\"object_cache_churns\":%llu,\"grows\":%llu,\"shrinks\":%llu,\"slab_churns\":%llu,"
        "\"slabs_peak\":%llu,\"slab_bytes\":%zu,\"f_t\":%llu,\"f_t_mean\":%llu,\"ms\":%llu,"
        "\"grace_periods\":%llu}\n",
        mix->name, subject, mix->size, worker_count, pace, round, counted ? "true" : "false",
        stats->allocations, stats->hits, stats->hits_after_merge, stats->refills, stats->flushes,
        stats->object_cache_churns, stats->grows, stats->shrinks, stats->slab_churns,
        stats->slabs_peak, mix_slab_bytes, ran->fragmentation, ran->fragmentation_mean, ran->ms,
        ran->grace_periods);
    pr_info(
        "BENCH {\"run\":\"mix-peak\",\"mix\":\"%s\",\"subject\":\"%s\",\"pace\":%u,"
        "\"round\":%u,\"slabs\":%llu,\"live\":%llu,\"latent\":%llu,\"cached\":%llu,"
        "\"object_cache\":%llu,\"overflowed\":%llu,\"preflushed\":%llu,\"premoved\":%llu}\n",
        mix->name, subject, pace, round, peak->slabs, peak->live, peak->latent, peak->cached,
        stats->object_cache_size, stats->overflowed_objects, stats->preflushed_objects,
        stats->premoved_slabs);
}

static bool mix_make_caches(void)
{
    our_cache = prudence_cache_create("bench_mix", mix->size, 0, 0, NULL);
    /* The usercopy region keeps SLUB from merging this cache with another. */
    slub_cache = kmem_cache_create_usercopy("bench_mix_slub", mix->size, 0, SLAB_HWCACHE_ALIGN, 0,
                                            (unsigned int)mix->size, NULL);
    return our_cache && slub_cache;
}

/* Samples the cache every tick until all workers have made their requests. */
static void mix_watch(bool ours, struct mix_look *peak, struct mix_run *ran)
{
    struct mix_look look = {};
    u64 looks = 0;

    while (!workers_rest()) {
        mix_look(ours, &look);
        if (look.slabs > peak->slabs)
            *peak = look;
        ran->fragmentation_mean += look.fragmentation;
        looks += look.live > 0;
        schedule_timeout_uninterruptible(1);
    }
    mix_look(ours, &look);
    ran->fragmentation = look.fragmentation;
    ran->fragmentation_mean = div64_u64(ran->fragmentation_mean, max(looks, 1ull));
}

static void mix_of(const struct subject *subject, bool counted, unsigned int round)
{
    bool ours = subject_is_ours(subject);
    struct prudence_cache_stats stats = {};
    struct mix_look peak = {};
    struct mix_run ran = {};
    unsigned long cookie;
    u64 start;

    if (!mix_make_caches())
        return;
    slub_forget_counts();
    prudence_cache_stats(our_cache, &stats);
    mix_slab_bytes = ours ? stats.slab_size : slub_slab_bytes();
    start = ktime_get_ns();
    cookie = get_state_synchronize_rcu();
    if (workers_start(do_mix, subject, mix->size, 1))
        return;
    mix_watch(ours, &peak, &ran);
    ran.ms = div64_u64(ktime_get_ns() - start, NSEC_PER_MSEC);
    ran.grace_periods = grace_periods(cookie, get_state_synchronize_rcu());
    if (ours)
        prudence_cache_stats(our_cache, &stats);
    else
        slub_stats(&stats);
    mix_print(subject->name, round, ours || counted, &stats, &peak, &ran);
    WRITE_ONCE(stop, true);
    workers_wait();
    workers_end();
    settle();
    kmem_cache_shrink(slub_cache);
    kmem_cache_destroy(slub_cache);
    prudence_cache_destroy(our_cache);
    if (slub_slabs_now())
        pr_warn("BENCH: SLUB's slabs were miscounted: %ld remain\n", slub_slabs_now());
}

void run_mixes(void)
{
    static const char *const names[] = {"prudence", "kfree_rcu", "call_rcu"};
    const char *only = subject_name;
    bool counted = watch && slub_watch();
    unsigned int round, i, j;

    for (round = 0; round < rounds; round++) {
        for (i = 0; i < ARRAY_SIZE(mixes); i++) {
            mix = &mixes[i];
            for (j = 0; j < ARRAY_SIZE(names); j++) { /* interleaved */
                subject_name = (char *)names[(j + round) % ARRAY_SIZE(names)];
                if ((!only_size || mix->size == only_size) &&
                    (!*only || !strcmp(only, subject_name)))
                    mix_of(subject_of(subject_name), counted, round);
            }
        }
    }
    if (counted)
        slub_unwatch();
}
