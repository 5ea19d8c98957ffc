/* SPDX-License-Identifier: MIT */
/* Prudence without a cache of the caller's: objects of any size, by their size class. */
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "prudence_counters.h"
#include "sized_pool.h"

/* Waits for a grace period, because there is no pool to destroy. */
static void pool_destroy(union pool pool)
{
    (void)pool;
    prudence_synchronize();
}

static inline void *allocate(union pool pool)
{
    return prudence_malloc(pool.size);
}

static inline void retire(union pool pool, void *object)
{
    (void)pool;
    prudence_free_deferred(object);
}

static inline void discard(union pool pool, void *object)
{
    (void)pool;
    prudence_free(object);
}

static const struct operations prudence_heap_operations = {
    .pool_create = pool_create,
    .pool_destroy = pool_destroy,
    .allocate = allocate,
    .retire = retire,
    .discard = discard,
    .retire_timed = retire,
    .read_lock = prudence_read_lock,
    .read_unlock = prudence_read_unlock,
};

FAMILY_LOOPS(prudence_heap)

const struct family prudence_heap_family = {
    .library = "prudence",
    .library_version = prudence_version,
    .deferring = true,
    .latent_limited = true,
    .quiesce = prudence_synchronize,
    .latent = prudence_latent,
    .report = prudence_report_totals,
    FAMILY_MEMBERS(prudence_heap),
};
