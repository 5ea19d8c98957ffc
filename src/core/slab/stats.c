/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Adds up a cache's counters. Conservation yields the counts that fast paths do not keep: objects
 * on a stack = frees pushed + put there by owners - pops - taken off by owners.
 */
#include "slab/stats.h"

#include "gp/gp.h"
#include "os/os.h"
#include "slab/cpu_cache.h"
#include "slab/latent_cache.h"
#include "slab/node.h"

/* Returns the number of objects in a ring that are known to be safe: all in closed batches, or
 * none. Reads `closed` before the cookie, so the cookie belongs to the batch that ends at `closed`,
 * or to a later one, which covers it. */
static unsigned safe_in_ring(const struct prudence_cache *cache, const struct cpu_cache *cpu)
{
    uint64_t closed = load_acquire(&cpu->closed); /* pairs with latent_cache_close */
    gp_cookie cookie = {load_relaxed(&cpu->closed_cookie.value)};
    int64_t count = (int64_t)(closed - load_relaxed(&cpu->line.ring_head));

    return count > 0 && gp_poll(cache->domain, cookie) ? (unsigned)count : 0;
}

#define ADD_COUNTER(name, meaning) sums->name += load_relaxed(&counts->name);

static void sum_cpu(struct cache_sums *sums, const struct prudence_cache *cache,
                    const struct cpu_cache *cpu)
{
    const struct cpu_counts *counts = &cpu->counts;
    uint64_t pops = stack_pops(&cpu->line), count = stack_count(&cpu->line);
    unsigned safe = safe_in_ring(cache, cpu), latent = latent_cache_count(cpu);

    latent -= latent < safe ? latent : safe;

    sums->hits += pops;
    sums->frees += count + pops + load_relaxed(&counts->unstacked) - load_relaxed(&counts->stacked);
    sums->deferred += load_relaxed(&cpu->line.ring_tail);
    sums->cached += count + safe;
    sums->latent += latent;
    sums->latent_bytes += latent * cache->body->stride;
    sums->object_cache_size = max_size(sums->object_cache_size, load_relaxed(&cpu->size));
    CPU_COUNTERS(ADD_COUNTER)
}

static void sum_node(struct cache_sums *sums, struct slab_node *node)
{
    const struct node_counts *counts = &node->counts;

    os_lock_take(&node->lock);
    sums->misses += counts->allocations;
    sums->frees += counts->frees;
    sums->deferred += counts->deferred;
    NODE_COUNTERS(ADD_COUNTER)
    os_lock_release(&node->lock);
    sums->latent += node_latent_objects(node, &sums->latent_bytes);
}

#define TAKE_COUNTER(name, meaning) sums->name = load_relaxed(&cache->body->name);

/* Adds up what a cache has that is not cold. */
static void sum_parts(struct cache_sums *sums, const struct prudence_cache *cache)
{
    for (unsigned i = 0; cache->percpu && i < os_cpu_count(); i++)
        sum_cpu(sums, cache, cpu_cache_of(cache, i));
    for (unsigned i = 0; i < os_node_count(); i++)
        sum_node(sums, &cache->body->nodes[i]);
    CACHE_COUNTERS(TAKE_COUNTER)
    if (unlikely(cache->flags & CACHE_COMMON)) /* the cold caches count */
        sums->hits = sums->misses = sums->frees = sums->deferred = 0;
}

void slab_stats_sum(const struct prudence_cache *cache, struct cache_sums *sums)
{
    *sums = (struct cache_sums){.hits = 0};
    if (!cache_is_cold(cache))
        sum_parts(sums, cache);
    sums->misses += load_relaxed(&cache->cold_allocations);
    sums->frees += load_relaxed(&cache->cold_frees);
    sums->deferred += load_relaxed(&cache->cold_deferred);
}

/* Returns the objects neither freed nor deferred. Operations in progress may be counted in part. */
static uint64_t stats_live(const struct cache_sums *sums)
{
    uint64_t allocated = sums->hits + sums->misses, gone = sums->frees + sums->deferred;

    return allocated > gone ? allocated - gone : 0;
}

#define COPY_COUNTER(name, meaning) figures->name = sums.name;

void stats_figures(const struct prudence_cache *cache, struct cache_figures *figures)
{
    bool cold = cache_is_cold(cache); /* then `common` counts the slabs */
    const struct cache_body *body = cache_body_of(cache);
    struct cache_sums sums;

    slab_stats_sum(cache, &sums);
    *figures = (struct cache_figures){
        .object_size = cache->object_size,
        .object_stride = body->stride,
        .slab_size = body->slab_bytes,
        .object_cache_size = sums.object_cache_size,
        .allocations = sums.hits + sums.misses,
        .hits = sums.hits,
        .frees = sums.frees,
        .deferred_frees = sums.deferred,
        .object_cache_churns = min_size(sums.refills, sums.flushes),
        .slab_churns = min_size(sums.grows, sums.shrinks),
        .slabs_now = cold ? 0 : load_relaxed(&body->slabs_now),
        .slabs_peak = cold ? 0 : load_relaxed(&body->slabs_peak),
        .objects_live = stats_live(&sums),
        .objects_latent = sums.latent,
        .objects_cached = sums.cached,
        .bytes_latent = sums.latent_bytes,
        .bytes_cached = sums.cached * body->stride,
    };
    ALL_COUNTERS(COPY_COUNTER)
}
