/* SPDX-License-Identifier: MIT */
/* Cold caches share slabs until they are used enough (see cold.c). */
#ifndef HEAP_COLD_H
#define HEAP_COLD_H

#include "slab/cache_type.h"
#include "slab/extension.h"

enum { COLD_EXTENSION = 11 }; /* number of the extension; the last, because it only counts */
extern const struct slab_extension cold_extension;

/* Policy: when is it asked whether a cache is cold? */
#define COLD_ROUND 64 /* allocations; of a cold cache, which may then become warm */

/* Caches that programs made, beyond which a new one begins cold. Only tests change it. */
extern uint32_t cold_after;

/* Returns the cache whose slabs a new cold cache shares, or NULL if the new cache begins warm. The
 * caller holds heap_lock. */
struct prudence_cache *cold_common_for(const struct cache_layout *layout);

/* Gives the new cache a structure, if it begins cold. Returns false if there is no memory. The
 * caller holds heap_lock, and calls cold_take_back if no cache was made. */
bool cold_give_structure(struct cache_layout *layout);
void cold_take_back(const struct cache_layout *layout);

/* Frees the rest of a destroyed cache. */
void cold_forget(struct prudence_cache *cache);

/* Count the caches of the program. */
void cold_note_made(void);
void cold_note_destroyed(void);

/* Returns the number of live objects in slabs that the cache shares. */
uint64_t cold_live(const struct prudence_cache *cache);

/* Returns whether the object of this index in a shared slab is the cache's. */
bool cold_has(const struct prudence_cache *cache, struct slab *slab, unsigned index);

/* Waits until no reader holds an object that was deferred there. */
void cold_settle(struct prudence_cache *cache);

/* Returns the slab of an object that a common cache has and that belongs to `cache` or to no cache,
 * or NULL if no common cache has the object. Reports an object of another cache. */
struct slab *cold_slab_of(const struct prudence_cache *cache, const void *object, const char *what);

#endif /* HEAP_COLD_H */
