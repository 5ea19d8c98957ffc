/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Sums of a cache's counters over CPUs and nodes, named as in <prudence/stats.h>. */
#ifndef SLAB_STATS_H
#define SLAB_STATS_H

#include "base/base.h"

struct prudence_cache;

struct cache_sums {
    uint64_t hits, hits_after_merge, misses, frees, deferred, overflowed;
    uint64_t cached, latent, latent_bytes;
    uint64_t refills, refilled_objects, flushes, flushed_objects;
    uint64_t merges, merged_objects, premoved_slabs, grows, shrinks;
    uint64_t object_cache_size;
};

void cache_sum(const struct prudence_cache *cache, struct cache_sums *sums);

#endif /* SLAB_STATS_H */
