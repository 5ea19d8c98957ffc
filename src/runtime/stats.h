/* SPDX-License-Identifier: MIT */
/* Figures for other files of this folder (stats.c). */
#ifndef RUNTIME_STATS_H
#define RUNTIME_STATS_H

#include <prudence/stats.h>

struct prudence_cache;

/* Takes the locks of the cache's nodes. */
void stats_of_cache(const struct prudence_cache *cache, struct prudence_cache_stats *stats);

/* Adds the figures that belong to no cache. Takes no lock. */
void stats_of_memory(struct prudence_stats *total);

#endif /* RUNTIME_STATS_H */
