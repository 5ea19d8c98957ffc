/* SPDX-License-Identifier: MIT */
/* Figures, for printing (stats.c). */
#ifndef PROCESS_STATS_H
#define PROCESS_STATS_H

#include <stdbool.h>

#include <prudence/stats.h>

struct prudence_cache;
struct prudence_domain;

/* Fills in a cache's figures. Takes the locks of the cache's nodes. */
void stats_of_cache(const struct prudence_cache *cache, struct prudence_cache_stats *stats);

/* Adds the figures that belong to no cache. Returns false if a lock is held, and the figures of
 * pages are missing. */
bool stats_of_memory_without_locks(struct prudence_stats *total);

/* Returns the bytes that the domain's waiting callbacks account for. Takes no lock. */
uint64_t stats_bytes_called(const struct prudence_domain *domain);

#endif /* PROCESS_STATS_H */
