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
    uint64_t closed = load_acquire(&cpu->closed); /* pairs with latent_close */
    gp_cookie cookie = {load_relaxed(&cpu->closed_cookie.value)};
    int64_t count = (int64_t)(closed - load_relaxed(&cpu->line.ring_head));

    return count > 0 && gp_poll(cache->domain, cookie) ? (unsigned)count : 0;
}

static void sum_cpu(struct cache_sums *sums, const struct prudence_cache *cache,
                    const struct cpu_cache *cpu)
{
    const struct cpu_counts *counts = &cpu->counts;
    uint64_t pops = stack_pops(&cpu->line), count = stack_count(&cpu->line);
    unsigned safe = safe_in_ring(cache, cpu), latent = latent_count(cpu);

    latent -= latent < safe ? latent : safe;

    sums->hits += pops;
    sums->hits_after_merge += load_relaxed(&counts->hits_after_merge);
    sums->frees += count + pops + load_relaxed(&counts->unstacked) - load_relaxed(&counts->stacked);
    sums->deferred += load_relaxed(&cpu->line.ring_tail);
    sums->cached += count + safe;
    sums->latent += latent;
    sums->latent_bytes += latent * cache->stride;
    sums->refills += load_relaxed(&counts->refills);
    sums->refilled_objects += load_relaxed(&counts->refilled_objects);
    sums->merges += load_relaxed(&counts->merges);
    sums->merged_objects += load_relaxed(&counts->merged_objects);
    sums->object_cache_size = max_size(sums->object_cache_size, load_relaxed(&cpu->size));
}

static void sum_node(struct cache_sums *sums, struct slab_node *node)
{
    const struct node_counts *counts = &node->counts;

    os_lock_take(&node->lock);
    sums->misses += counts->allocations;
    sums->frees += counts->frees;
    sums->deferred += counts->deferred;
    sums->overflowed += counts->overflowed;
    sums->flushes += counts->flushes;
    sums->flushed_objects += counts->flushed_objects;
    sums->merges += counts->merges;
    sums->merged_objects += counts->merged_objects;
    sums->premoved_slabs += counts->premoved_slabs;
    sums->grows += counts->grows;
    sums->shrinks += counts->shrinks;
    os_lock_release(&node->lock);
    sums->latent += node_latent_objects(node, &sums->latent_bytes);
}

void cache_sum(const struct prudence_cache *cache, struct cache_sums *sums)
{
    *sums = (struct cache_sums){.hits = 0};
    for (unsigned i = 0; cache->percpu && i < os_cpu_count(); i++)
        sum_cpu(sums, cache, cpu_cache_of(cache, i));
    for (unsigned i = 0; i < os_node_count(); i++)
        sum_node(sums, &cache->nodes[i]);
}
