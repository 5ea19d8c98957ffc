/* SPDX-License-Identifier: MIT */
/* Figures for other files of this folder (stats.c). */
#ifndef RUNTIME_STATS_H
#define RUNTIME_STATS_H

#include <stdbool.h>

#include <prudence/stats.h>

struct prudence_cache;
struct prudence_domain;

/* Takes the locks of the cache's nodes. */
void stats_of_cache(const struct prudence_cache *cache, struct prudence_cache_stats *stats);

/* Adds the figures that belong to no cache. False: without those of pages, because their lock is held. */
bool stats_of_memory_without_locks(struct prudence_stats *total);

/* What the domain's callbacks stand for that wait. Takes no lock. */
uint64_t stats_bytes_called(const struct prudence_domain *domain);

/* Everything that prudence_stats_print prints, as text or JSON. */
struct output;
void stats_print(struct output *output, bool json);

#endif /* RUNTIME_STATS_H */
