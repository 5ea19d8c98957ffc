/* SPDX-License-Identifier: MIT */
/* Prudence's slab caches used as a plain allocator: prudence_cache_alloc and prudence_cache_free. */
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "loops.h"
#include "prudence_counters.h"

static union pool pool_create(size_t object_size)
{
    return (union pool){.cache = prudence_counted_cache(object_size)};
}

static void pool_destroy(union pool pool)
{
    prudence_cache_destroy(pool.cache);
}

static inline void *allocate(union pool pool)
{
    return prudence_cache_alloc(pool.cache);
}

static inline void retire(union pool pool, void *object)
{
    prudence_cache_free(pool.cache, object);
}

static const struct operations operations = {
    .pool_create = pool_create,
    .pool_destroy = pool_destroy,
    .allocate = allocate,
    .retire = retire,
    .discard = retire,
    .retire_timed = retire,
    .read_lock = prudence_read_lock,
    .read_unlock = prudence_read_unlock,
};

SUBJECT_LOOPS

const struct family plain_cache_family = {
    .library = "prudence",
    .library_version = prudence_version,
    .report = prudence_report,
    .operations = &operations,
    .loops = SUBJECT_LOOP_TABLE,
};
