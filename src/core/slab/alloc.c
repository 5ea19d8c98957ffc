/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Allocation slow path: takes an object from the object cache, else after a merge, else by a refill
 * (paper, Algorithm 1, lines 1 to 33).
 */
#include "base/pace.h"
#include "gp/gp.h"
#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/cpu_cache.h"
#include "slab/latent_cache.h"
#include "slab/object_cache.h"
#include "slab/reclaim/budget.h"
#include "slab/reclaim/budget_share.h"
#include "slab/reclaim/abandoned.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/poll_objects.h"
#include "slab/reclaim/throttle.h"
#include "slab/refill.h"
#include "slab/reuse.h"
#include "slab/slow_path.h"

/* Policy: when does an allocating thread drive a grace period? */
/*
 * Bytes deferred on a CPU that are worth a grace period. If that costs no system call, they are few
 * enough to reuse an object within some ten microseconds, and enough objects to make the cost of a
 * scan small in comparison.
 */
#define DUE_CHEAP_OBJECTS     ((size_t)1024)     /* objects; most that wait without a system call */
#define DUE_CHEAP_BYTES       ((size_t)64 << 10) /* bytes; come back within some ten microseconds */
#define DUE_CHEAP_OBJECTS_MIN ((size_t)128)      /* objects; enough to make a scan's cost small */
#define DUE_COSTLY_BYTES      ((size_t)4 << 20)  /* bytes; most if it costs a system call */
#define DUE_COSTLY_PER_NS     3                  /* objects; of some 10 ns a pair, one part in 30 */

static size_t due_bytes(const struct prudence_cache *cache)
{
    uint64_t cost = gp_cost(cache->domain);

    if (cost)
        return clamp_size(cost * DUE_COSTLY_PER_NS * cache->body->stride, DUE_CHEAP_BYTES,
                          DUE_COSTLY_BYTES);
    return clamp_size(DUE_CHEAP_BYTES, DUE_CHEAP_OBJECTS_MIN * cache->body->stride,
                      DUE_CHEAP_OBJECTS * cache->body->stride);
}

/* Findings of a miss while it owned the caches. */
struct miss {
    void *object;
    unsigned refill;  /* objects to take from the node */
    bool no_arrays;   /* the CPU had none */
    bool past_caches; /* and got none */
    unsigned grow;    /* the size that demand asks for; 0 keeps the present one */
    bool demanded;    /* ... and other caches shrink for it; else only unused budget is taken */
    bool waits;       /* closed batches exist; `cookie` makes them all safe */
    bool enough;      /* ... and enough to be worth a grace period, or one has been requested */
    bool due;         /* ... or so much that the ring is full */
    gp_cookie cookie;
    unsigned cpu;        /* the CPU whose caches the miss owned */
    struct reuse *reuse; /* of caches with CACHE_DESTRUCTED, else NULL */
};

/* Returns whether a grace period is worth its cost: caches deferred enough on this CPU, or one that
 * serves this cache as well was requested. */
static bool grace_period_is_worth_it(const struct prudence_cache *cache, const struct miss *miss)
{
    return limit_due(miss->cpu) >= due_bytes(cache) || gp_is_requested(cache->domain, miss->cookie);
}

/* Decides on growth (rule 10). A cache grows when the ring is full and a grace period is not
 * worth it or not the caller's to drive (`crowded`), when a flushed object or the room for an
 * overflowed one is wanted back, and at first. */
static void weigh_growth(const struct prudence_cache *cache, const struct cpu_cache *cpu,
                         bool crowded, struct miss *miss)
{
    miss->demanded = crowded || cpu->churned;
    if (!cpu->slots)
        miss->grow = cache->body->size_min;
    else if (miss->demanded || budget_allows_start(cache, cpu))
        miss->grow = (unsigned)min_size((size_t)2 * cpu->size, cache->body->size_max);
    if (miss->grow <= cpu->size)
        miss->grow = 0;
}

static void alloc_weigh(struct prudence_cache *cache, struct cpu_cache *cpu, struct miss *miss)
{
    unsigned latent = latent_cache_count(cpu);
    bool full = latent + batch_of(cache, cpu) > cpu->size;

    miss->cpu = cpu->line.cpu;
    miss->no_arrays = !cpu->slots;
    miss->refill = cpu->slots ? refill_room(cache, cpu) : cache->body->size_min;
    miss->waits = latent_cache_newest_cookie(cpu, &miss->cookie);
    miss->enough = GP_CALLERS_DRIVE && miss->waits && grace_period_is_worth_it(cache, miss);
    miss->due = miss->waits && (full || miss->enough);
    weigh_growth(cache, cpu, full && !miss->enough, miss);
}

/* Merges, or takes objects for reuse. Returns their number. */
static unsigned merge_here(struct prudence_cache *cache, struct cpu_cache *cpu, struct miss *miss)
{
    if (likely(!miss->reuse))
        return latent_cache_merge(cache, cpu);
    return miss->reuse->may ? latent_cache_reuse(cache, cpu, miss->reuse) : 0;
}

/* Takes an object from this CPU's stack, if need be after a merge. Returns false if another thread
 * owns the caches. */
static __attribute__((__noinline__)) bool take_or_merge(struct prudence_cache *cache,
                                                        struct miss *miss)
{
    struct cpu_cache *cpu = cpu_cache_take(cache, miss);
    unsigned merged = 0;

    if (!cpu)
        return false;
    miss->object = object_cache_pop(cpu);
    if (!miss->object && cpu->slots) {
        latent_cache_close(cache, cpu);
        merged = merge_here(cache, cpu, miss);
        if (!merged) {
            latent_cache_end_at_once(cache, cpu);
            merged = merge_here(cache, cpu, miss);
        }
        if (merged && !miss->reuse) {
            miss->object = object_cache_pop(cpu);
            count_add(&cpu->counts.hits_after_merge, 1);
        }
        if (cpu->ahead && !latent_cache_is_open(cache, cpu))
            latent_cache_open(cache, cpu); /* reserve a whole batch again, for the fast path */
    }
    if (!miss->object && !merged)
        alloc_weigh(cache, cpu, miss);
    cpu_cache_release(cpu);
    return true;
}

/* Does the same if objects must be made fit. Returns false also if another thread owns the caches
 * when that is done. */
static __attribute__((__noinline__)) bool take_or_reuse(struct prudence_cache *cache,
                                                        struct miss *miss)
{
    bool owned;

    miss->reuse->count = 0;
    os_in_flight_begin();
    owned = take_or_merge(cache, miss);
    if (!miss->reuse->count) {
        os_in_flight_end();
        return owned;
    }
    miss->object = reuse_finish(miss->reuse);
    return miss->object != NULL;
}

static bool take_here(struct prudence_cache *cache, struct miss *miss)
{
    return unlikely(miss->reuse != NULL) ? take_or_reuse(cache, miss) : take_or_merge(cache, miss);
}

/* Drives the grace period that the closed batches wait for, and tries the CPU's caches again. */
static void drive_and_take(struct prudence_cache *cache, struct miss *miss)
{
    if (!gp_advance(cache->domain, miss->cookie))
        return;
    limit_due_clear(miss->cpu);
    take_here(cache, miss);
    if (unlikely(cache->flags & CACHE_POLLS_OBJECTS) && !miss->object)
        poll_objects_here(cache);
}

/*
 * Returns whether to try for latent objects before the cache grows, although a grace period is not
 * due. Otherwise a few would wait forever while the cache grows. Tries are paced, so that a cache
 * can grow to the size at which grace periods are rare.
 */
#define AVOID_CHEAP_NS  100000  /* ns; between two tries, so that a cache can grow */
#define AVOID_COSTLY_NS 1000000 /* ns; the same if a grace period costs a system call */

static bool avoid_growing(struct prudence_cache *cache)
{
    return is_time_again(&cache->body->grow_avoided_at, os_clock_ns(),
                         gp_cost(cache->domain) ? AVOID_COSTLY_NS : AVOID_CHEAP_NS);
}

static void *alloc_refill(struct prudence_cache *cache, struct miss *miss, os_alloc_flags flags)
{
    const struct slab_node *empty = NULL;
    void *object = refill_object_cache(cache, miss->refill, false, &empty, flags);

    if (object)
        return object;
    if (miss->waits && !miss->due && avoid_growing(cache)) {
        empty = NULL;
        drive_and_take(cache, miss);
        if (miss->object)
            return miss->object;
    }
    if (throttle_growth(cache, flags)) {
        empty = NULL;
        take_here(cache, miss);
        if (miss->object)
            return miss->object;
    }
    return refill_object_cache(cache, miss->refill, true, &empty, flags);
}

/* Makes the first arrays of this CPU, which may begin with the size of an abandoned CPU. */
static void alloc_begin_caches(struct prudence_cache *cache, struct miss *miss)
{
    miss->past_caches = !abandoned_grow(cache);
    if (!miss->past_caches)
        miss->refill = (unsigned)clamp_size(load_relaxed(&cpu_cache_of(cache, miss->cpu)->size) / 2,
                                            miss->refill, TRANSFER_MAX);
}

/* Returns false if the budget does not allow the growth. The ring then stays full, so a full ring
 * alone is no reason for a grace period, which few objects would pay for. */
static bool alloc_grow_caches(struct prudence_cache *cache, struct miss *miss)
{
    const struct cpu_cache *cpu = cpu_cache_of(cache, miss->cpu);

    if (OS_BUDGET_IS_SHARED && miss->demanded && !budget_allows(cache, cpu, miss->grow))
        budget_share_for(cache, miss->grow);
    if (!budget_allows(cache, cpu, miss->grow))
        return false;
    if (miss->no_arrays)
        alloc_begin_caches(cache, miss);
    else
        cpu_cache_grow(cache, miss->grow);
    return true;
}

static __attribute__((__noinline__)) void *alloc_by(struct prudence_cache *cache, struct miss *miss,
                                                    os_alloc_flags flags)
{
    if (!take_here(cache, miss))
        return refill_bypass_cache(cache, flags);
    if (!miss->object && miss->grow && !alloc_grow_caches(cache, miss))
        miss->due = miss->enough;
    if (unlikely(miss->past_caches))
        return refill_bypass_cache(cache, flags);
    if (!miss->object && miss->due)
        drive_and_take(cache, miss);
    return miss->object ? miss->object : alloc_refill(cache, miss, flags);
}

/* A function of its own, because its stack is larger. */
static __attribute__((__noinline__)) void *alloc_reusing(struct prudence_cache *cache,
                                                         os_alloc_flags flags)
{
    struct reuse reuse UNINITIALIZED;
    struct miss miss = {.refill = 1, .reuse = &reuse};
    void *object;

    reuse.cache = cache;
    reuse.may = reuse_upcalls.may_reuse();
    object = alloc_by(cache, &miss, flags);
    return object || reuse.may ? object : reuse_upcalls.apart(cache);
}

void *alloc_from_cache(struct prudence_cache *cache, os_alloc_flags flags)
{
    struct miss miss = {.refill = 1};

    return unlikely(cache->flags & CACHE_DESTRUCTED) ? alloc_reusing(cache, flags)
                                                     : alloc_by(cache, &miss, flags);
}

/* Takes the stack's objects in one go, the others one by one. */
size_t alloc_bulk_from_cache(struct prudence_cache *cache, size_t count, void **objects,
                             os_alloc_flags flags)
{
    size_t done = 0;

    while (done < count) {
        unsigned want = (unsigned)min_size(count - done, TRANSFER_MAX), taken = 0;
        struct cpu_cache *cpu = cpu_cache_take(cache, &taken);

        if (cpu) {
            taken = object_cache_take(cpu, objects + done, want);
            /* Bulk takes are pops, too; count them where the fast path does. */
            store_relaxed(&cpu->line.stack_word, load_relaxed(&cpu->line.stack_word) +
                                                     ((uint64_t)taken << STACK_COUNT_BITS));
            cpu_cache_release(cpu);
        }
        done += taken;
        if (taken == want)
            continue;
        objects[done] = alloc_from_cache(cache, flags);
        if (!objects[done])
            break;
        done++;
    }
    return done;
}
