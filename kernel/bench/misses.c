// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Measures the cost of an allocation that hits, refills the object cache or grows the slab cache;
 * section 3.3 of the paper gives ratios of 1, 4 and 14. Allocates from a cache without slabs
 * (grows), frees seven of eight objects, so that every slab stays with its node, and allocates them
 * again (refills).
 *
 * Each allocation is timed alone, by a counter that counts instructions on the machine that
 * lab/run/count-misses boots. Our statistics show the kind of allocation. SLUB's probes would
 * add to the time, so SLUB runs twice. The first cache, with probes, shows the kind of each
 * allocation; the second, without probes, is timed. A single thread on one CPU makes the same
 * requests, so the kinds are the same.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/prudence.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/timex.h>

#include "bench.h"

enum kind { HIT, REFILL, GROW, KINDS };

struct allocation {
    u32 ticks;
    u8 kind;
};

struct counted {
    u64 refills, grows;
};

static struct prudence_cache *our_cache;
static void **objects;                 /* `pairs` entries */
static struct allocation *allocations; /* in order of request, at most two per object */
static unsigned int requests;
static bool ours, classify; /* allocator; whether to look up the kind of each allocation */

static void *allocate(void)
{
    return ours ? prudence_cache_alloc(our_cache, GFP_KERNEL)
                : kmem_cache_alloc(slub_cache, GFP_KERNEL);
}

static void release(void *object)
{
    if (ours)
        prudence_cache_free(our_cache, object);
    else
        kmem_cache_free(slub_cache, object);
}

static struct counted count(void)
{
    struct prudence_cache_stats stats = {};

    if (ours)
        prudence_cache_stats(our_cache, &stats);
    else
        slub_stats(&stats);
    return (struct counted){stats.refills, stats.grows};
}

static enum kind kind_of(struct counted before, struct counted after)
{
    return after.grows > before.grows ? GROW : after.refills > before.refills ? REFILL : HIT;
}

/* Allocates the objects that are NULL. Returns false if an allocation failed. */
static bool fill(void)
{
    struct counted before = classify ? count() : (struct counted){}, after = before;
    unsigned int i;

    for (i = 0; i < pairs; i++) {
        struct allocation *now = &allocations[requests];
        cycles_t begin, end;

        if (objects[i])
            continue;
        begin = get_cycles();
        objects[i] = allocate();
        end = get_cycles();
        if (!objects[i])
            return false;
        now->ticks = (u32)(end - begin);
        if (classify) {
            after = count();
            now->kind = kind_of(before, after);
            before = after;
        }
        requests++;
        cond_resched();
    }
    return true;
}

static void empty(unsigned int but_one_of)
{
    unsigned int i;

    for (i = 0; i < pairs; i++)
        if (objects[i] && (!but_one_of || i % but_one_of)) {
            release(objects[i]);
            objects[i] = NULL;
        }
}

/* Creates both caches, makes the requests and destroys the caches. Returns false on failure. */
static bool make_requests(size_t size)
{
    bool made, done = false;

    our_cache = prudence_cache_create("bench_misses", size, 0, 0, NULL);
    /* The usercopy region keeps SLUB from merging this cache with another. */
    slub_cache = kmem_cache_create_usercopy("bench_misses_slub", size, 0, SLAB_HWCACHE_ALIGN, 0,
                                            (unsigned int)size, NULL);
    made = our_cache && slub_cache;
    requests = 0;
    if (made) {
        done = fill();
        empty(8);
        done = done && fill();
        empty(0);
    }
    kmem_cache_destroy(slub_cache);
    prudence_cache_destroy(our_cache);
    return done;
}

static int by_kind_and_ticks(const void *a, const void *b)
{
    const struct allocation *one = a, *other = b;

    if (one->kind != other->kind)
        return one->kind < other->kind ? -1 : 1;
    return (one->ticks > other->ticks) - (one->ticks < other->ticks);
}

static void print(size_t size)
{
    static const char *const names[] = {"hit", "refill", "grow"};
    unsigned int first = 0, end;
    cycles_t begin = get_cycles();
    char text[160];
    int kind, length = 0;

    begin = get_cycles() - begin; /* cost of the two readings */
    sort(allocations, requests, sizeof(*allocations), by_kind_and_ticks, NULL);
    for (kind = HIT; kind < KINDS; kind++, first = end) {
        for (end = first; end < requests && allocations[end].kind == kind; end++)
            ;
        length += scnprintf(text + length, sizeof(text) - length,
                            ",\"%s\":{\"count\":%u,\"median\":%u}", names[kind], end - first,
                            end > first ? allocations[first + (end - first) / 2].ticks : 0);
    }
    pr_info("BENCH {\"run\":\"misses\",\"subject\":\"%s\",\"size\":%zu,\"empty\":%llu%s}\n",
            ours ? "prudence" : "slub", size, (u64)begin, text);
}

static void misses_of(size_t size)
{
    ours = true;
    classify = true;
    if (make_requests(size))
        print(size);
    ours = false;
    if (!slub_watch())
        return;
    slub_forget_counts();
    classify = make_requests(size);
    slub_unwatch();
    if (!classify)
        return;
    classify = false;
    if (make_requests(size))
        print(size);
}

int run_misses(void)
{
    static const size_t sizes[] = {64, 256, 1024, 4096};
    unsigned int i;

    objects = kvcalloc(pairs, sizeof(*objects), GFP_KERNEL);
    allocations = kvcalloc(pairs, 2 * sizeof(*allocations), GFP_KERNEL);
    for (i = 0; objects && allocations && i < ARRAY_SIZE(sizes); i++)
        if (!only_size || sizes[i] == only_size)
            misses_of(sizes[i]);
    i = objects && allocations;
    kvfree(objects);
    kvfree(allocations);
    return i ? 0 : -ENOMEM;
}
