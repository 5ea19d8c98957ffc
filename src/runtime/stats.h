/* SPDX-License-Identifier: MIT */
/* Figures for the layers above (stats.c). */
#ifndef RUNTIME_STATS_H
#define RUNTIME_STATS_H

#include <stdbool.h>

#include <prudence/stats.h>

/* Those of the cache at a place in the list of caches; false behind its end. */
bool stats_of_nth_cache(unsigned place, struct prudence_cache_stats *stats);

#endif /* RUNTIME_STATS_H */
