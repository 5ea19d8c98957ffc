/* SPDX-License-Identifier: MIT */
/* Families whose pool is a slab cache of Prudence. A file that includes this defines POOL_DOMAIN if
 * the readers are not those of the default domain. */
#ifndef BENCH_PRUDENCE_POOL_H
#define BENCH_PRUDENCE_POOL_H

#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "loops.h"
#include "prudence_counters.h"

#ifndef POOL_DOMAIN
#define POOL_DOMAIN NULL
#endif

static union pool pool_create(size_t object_size)
{
    return (union pool){.cache = prudence_counted_cache(object_size, POOL_DOMAIN)};
}

static inline void pool_destroy(union pool pool)
{
    prudence_cache_destroy(pool.cache);
}

static inline void *allocate(union pool pool)
{
    return prudence_cache_alloc(pool.cache);
}

static inline void discard(union pool pool, void *object)
{
    prudence_cache_free(pool.cache, object);
}

#endif /* BENCH_PRUDENCE_POOL_H */
