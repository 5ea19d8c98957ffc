/* SPDX-License-Identifier: MIT */
/* Waits for readers that name deferred objects of one cache (see named.c). */
#ifndef TOOLKIT_DOMAINS_NAMED_H
#define TOOLKIT_DOMAINS_NAMED_H

#include "slab/cache_type.h"
#include "toolkit/domains/hazard_names.h"

/* Returns whether a hazard pointer of this thread, but no movable one, names a deferred object of
 * the cache. Always false unless CACHE_POLLS_OBJECTS. */
bool named_by_this_thread(struct prudence_cache *cache);

/* Waits until each object of the cache that was deferred before is safe. Returns false if the
 * deadline came first (0: none). CACHE_POLLS_OBJECTS only. The caller holds nothing. */
bool named_wait(struct prudence_cache *cache, uint64_t deadline);

/* The names that another wait for the cache's objects may be for. The caller clears `begun`. */
struct named_stall {
    bool begun;
    struct hazard_watch watch;
};

/* Called again and again in such a wait. Reports names that stay on deferred objects of the cache
 * for the time of a stall. CACHE_POLLS_OBJECTS only. The caller holds nothing. */
void named_note(struct prudence_cache *cache, struct named_stall *stall);

#endif /* TOOLKIT_DOMAINS_NAMED_H */
