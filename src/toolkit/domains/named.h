/* SPDX-License-Identifier: MIT */
/* Waits for readers that name deferred objects of one cache (see named.c). */
#ifndef TOOLKIT_DOMAINS_NAMED_H
#define TOOLKIT_DOMAINS_NAMED_H

#include "slab/cache_type.h"

/* Returns whether a hazard pointer of this thread, but no movable one, names a deferred object of
 * the cache. Always false unless CACHE_POLLS_OBJECTS. */
bool named_by_this_thread(struct prudence_cache *cache);

/* Waits until each object of the cache that was deferred before is safe. Returns false if the
 * deadline came first (0: none). CACHE_POLLS_OBJECTS only. The caller holds nothing. */
bool named_wait(struct prudence_cache *cache, uint64_t deadline);

#endif /* TOOLKIT_DOMAINS_NAMED_H */
