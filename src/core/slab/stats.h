/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Sums of a cache's counters over CPUs and nodes, and all figures of the cache. */
#ifndef SLAB_STATS_H
#define SLAB_STATS_H

#include "base/base.h"
#include "slab/figures.h"

struct prudence_cache;

struct cache_sums {
    uint64_t hits, misses, frees, deferred;
    uint64_t cached, latent, latent_bytes;
    uint64_t object_cache_size;
    ALL_COUNTERS(COUNTER_FIELD)
};

void slab_stats_sum(const struct prudence_cache *cache, struct cache_sums *sums);

/* The figures, named as in <prudence/stats.h>. */
struct cache_figures {
    ALL_FIGURES(COUNTER_FIELD, FIGURE_FIELD)
};

void stats_figures(const struct prudence_cache *cache, struct cache_figures *figures);

#endif /* SLAB_STATS_H */
