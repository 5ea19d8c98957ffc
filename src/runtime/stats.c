/* SPDX-License-Identifier: MIT */
/* Figures of each cache and totals. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "gp/user/slots.h"
#include "heap/cache_life.h"
#include "heap/heap.h"
#include "pages/pages.h"
#include "rcu/call.h"
#include "rcu/callback_queue.h"
#include "runtime/stats.h"
#include "slab/all_caches.h"
#include "slab/doubles.h"
#include "slab/reclaim/budget.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"
#include "slab/stats.h"

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void fill_from_sums(struct prudence_cache_stats *stats, const struct cache_sums *sums)
{
    stats->allocations = sums->hits + sums->misses;
    stats->hits = sums->hits;
    stats->hits_after_merge = sums->hits_after_merge;
    stats->frees = sums->frees;
    stats->deferred_frees = sums->deferred;
    stats->refills = sums->refills;
    stats->refilled_objects = sums->refilled_objects;
    stats->flushes = sums->flushes;
    stats->flushed_objects = sums->flushed_objects;
    stats->object_cache_churns = smaller(sums->refills, sums->flushes);
    stats->grows = sums->grows;
    stats->shrinks = sums->shrinks;
    stats->slab_churns = smaller(sums->grows, sums->shrinks);
    stats->merges = sums->merges;
    stats->merged_objects = sums->merged_objects;
    stats->overflowed_objects = sums->overflowed;
    stats->premoved_slabs = sums->premoved_slabs;
    stats->objects_live = stats->allocations - sums->frees - sums->deferred;
    stats->objects_latent = sums->latent;
    stats->objects_cached = sums->cached;
    stats->object_cache_size = sums->object_cache_size;
}

void stats_of_cache(const struct prudence_cache *cache, struct prudence_cache_stats *stats)
{
    struct cache_sums sums;

    cache_sum(cache, &sums);
    *stats = (struct prudence_cache_stats){.object_size = cache->object_size};
    memcpy(stats->name, cache->name, sizeof stats->name);
    fill_from_sums(stats, &sums);
    stats->object_stride = cache->stride;
    stats->slab_size = cache->slab_bytes;
    stats->preflushed_objects = load_relaxed(&cache->preflushed);
    stats->busy_bypasses = load_relaxed(&cache->bypasses);
    stats->remote_drains = load_relaxed(&cache->remote_drains);
    stats->pressure_waits = load_relaxed(&cache->pressure_waits);
    stats->slabs_now = load_relaxed(&cache->slabs_now);
    stats->slabs_peak = load_relaxed(&cache->slabs_peak);
    stats->bytes_latent = sums.latent_bytes;
    stats->bytes_cached = sums.cached * cache->stride;
    if (stats->objects_live && cache->percpu)
        stats->total_fragmentation = (double)stats->slabs_now * (double)stats->slab_size /
                                     ((double)stats->objects_live * (double)stats->object_size);
}

int prudence_cache_stats_sized(struct prudence_cache *cache, struct prudence_cache_stats *stats,
                               size_t size)
{
    struct prudence_cache_stats all;

    if (!cache || !stats)
        return EINVAL;
    cache_require(cache, "prudence_cache_stats");
    stats_of_cache(cache, &all);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}

static void add_cache(struct prudence_stats *total, const struct prudence_cache *cache)
{
    struct prudence_cache_stats stats;

    stats_of_cache(cache, &stats);
    total->caches++;
    total->allocations += stats.allocations;
    total->hits += stats.hits;
    total->hits_after_merge += stats.hits_after_merge;
    total->frees += stats.frees;
    total->deferred_frees += stats.deferred_frees;
    total->object_cache_churns += stats.object_cache_churns;
    total->slab_churns += stats.slab_churns;
    total->merges += stats.merges;
    total->slabs_now += stats.slabs_now;
    total->objects_live += stats.objects_live;
    total->objects_latent += stats.objects_latent;
    total->bytes_latent += stats.bytes_latent;
    total->bytes_cached += stats.bytes_cached;
}

/* Reads the pointer, because callback_queue_of() would make the default domain's queue, under a
 * lock. */
uint64_t stats_bytes_called(const struct prudence_domain *domain)
{
    const struct callback_queue *queue = load_acquire(&domain->callbacks);

    return queue ? callback_bytes(queue) : 0;
}

static void add_pages(struct prudence_stats *total, const struct os_pages_stats *pages)
{
    total->slab_bytes = pages->used;
    total->slab_bytes_peak = pages->used_peak;
    total->retained_bytes = pages->retained;
    total->metadata_bytes = pages->metadata;
}

static void add_counts(struct prudence_stats *total)
{
    total->bytes_latent_peak = limit_used_peak();
    total->limit = os_pages_limit();
    total->latent_limit = load_relaxed(&slab_latent_limit);
    total->cache_per_cpu = load_relaxed(&slab_cache_per_cpu);
    total->cache_total = load_relaxed(&slab_cache_total);
    total->pressure_waits = load_relaxed(&wait_counts.pressure_waits);
    total->throttle_waits = load_relaxed(&wait_counts.waits);
    total->throttle_expiries = load_relaxed(&wait_counts.expiries);
    total->latent_overruns = load_relaxed(&latent_overruns);
    total->call_bytes = stats_bytes_called(&prudence_default);
    total->call_waits = load_relaxed(&call_counts.waits);
    total->call_expiries = load_relaxed(&call_counts.expiries);
    total->call_overruns = load_relaxed(&call_counts.overruns);
}

bool stats_of_memory_without_locks(struct prudence_stats *total)
{
    struct os_pages_stats pages;
    bool known = pages_try_stats(&pages);

    if (known)
        add_pages(total, &pages);
    add_counts(total);
    return known;
}

/* Copies text into a field of 16 bytes that is already zeroed. */
static void set_text(char field[16], const char *text)
{
    snprintf(field, 16, "%s", text);
}

static void add_grace_periods(struct prudence_stats *total)
{
    struct prudence_domain *domain = &prudence_default;

    total->grace_periods = load_relaxed(&domain->grace_periods);
    total->grace_period_scans = load_relaxed(&domain->scans);
    total->membarriers = load_relaxed(&domain->membarriers);
    total->mode_switches = load_relaxed(&domain->mode_switches);
    total->stalls = load_relaxed(&domain->stalls);
    total->readers = readers_reap(domain, true, READERS_A_FEW);
    set_text(total->percpu, os_percpu_rseq ? "rseq" : "lock");
    snprintf(total->percpu_reason, sizeof total->percpu_reason, "%s",
             os_percpu_why_not ? os_percpu_why_not : "");
    total->doubles_passed_over = doubles_passed_over();
    set_text(total->readers_mode, load_relaxed(&domain->shared.fenced) ? "fenced" : "fence-free");
    set_text(total->membarrier, os_membarrier_available() ? "available" : "missing");
}

int prudence_stats_sized(struct prudence_stats *stats, size_t size)
{
    struct prudence_stats all = {.caches = 0};
    struct os_pages_stats pages;
    struct list *item;

    if (!stats)
        return EINVAL;
    process_start();
    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        add_cache(&all, list_entry(item, struct prudence_cache, link));
    }
    os_lock_release(&slab_caches_lock);
    os_pages_stats(&pages);
    add_pages(&all, &pages);
    add_counts(&all);
    add_grace_periods(&all);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}

/* Finds the first cache with a number above the walk's; the list is in the order of numbers. */
int prudence_next_cache_sized(struct prudence_walk *walk, struct prudence_cache_stats *stats,
                              size_t size)
{
    struct prudence_cache_stats all;
    struct list *item;
    int end = ENOENT;

    if (!walk || !stats)
        return EINVAL;
    process_start();
    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        const struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        if (cache->number <= walk->after[0])
            continue;
        walk->after[0] = cache->number;
        stats_of_cache(cache, &all);
        end = 0;
        break;
    }
    os_lock_release(&slab_caches_lock);
    if (!end)
        give_sized(stats, size, &all, sizeof all);
    return end;
}
