/* SPDX-License-Identifier: MIT */
/* The end of a cache, and the reports about calls that use the cache afterwards (see
 * cache_life.c). */
#ifndef HEAP_CACHE_LIFE_H
#define HEAP_CACHE_LIFE_H

#include "slab/cache_type.h"

/* Destroys the cache as cache_destroy() does. Reports live objects with their number, and returns
 * false while there are any. */
bool cache_life_end(struct prudence_cache *cache, const char *what, void *caller);

/* Reports the use of a cache that is NULL or was destroyed, and ends the process. */
void cache_life_refuse(const struct prudence_cache *cache, const char *what)
    __attribute__((noreturn, cold));

static inline void cache_require(const struct prudence_cache *cache, const char *what)
{
    if (unlikely(!cache) || unlikely(cache_is_destroyed(cache)))
        cache_life_refuse(cache, what);
}

#endif /* HEAP_CACHE_LIFE_H */
