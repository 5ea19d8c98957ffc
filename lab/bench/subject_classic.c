/* SPDX-License-Identifier: MIT */
/*
 * Prudence's slabs without the paper's additions: the same caches, allocated from and freed to
 * directly, and deferral by a queue of callbacks, as in a kernel with a classic slab allocator.
 */
#include "classic.h"
#include "prudence_pool.h"

static void pool_drain_and_destroy(union pool pool)
{
    classic_barrier();
    pool_destroy(pool);
}

static void free_object(struct classic_head *head)
{
    struct prudence_cache *cache = head->cache;

    reclaimed_one();
    prudence_cache_free(cache, head);
}

static void free_timed_object(struct classic_head *head)
{
    timed_object_freed(head);
    free_object(head);
}

static inline void retire(union pool pool, void *object)
{
    classic_call(object, pool.cache);
}

static void start(struct run *run)
{
    classic_start(run->scenario->times_objects ? free_timed_object : free_object);
}

/* The library's own account of latent bytes is empty here, because deferred objects are in the
 * queues. */
static void report(struct run *run, json_t *result)
{
    json_t *latent = json_incref(json_object_get(result, "latent_peak_bytes"));

    prudence_report(run, result);
    json_object_set_new(result, "latent_peak_bytes", latent);
}

static const struct operations classic_operations = {
    .pool_create = pool_create,
    .pool_destroy = pool_drain_and_destroy,
    .allocate = allocate,
    .retire = retire,
    .discard = discard,
    .retire_timed = retire,
    .read_lock = prudence_read_lock,
    .read_unlock = prudence_read_unlock,
    .times_callbacks = true,
};

FAMILY_LOOPS(classic)

const struct family classic_family = {
    .library = "prudence",
    .library_version = prudence_version,
    .deferring = true,
    .start = start,
    .quiesce = classic_barrier,
    .latent = reclaimed_latent,
    .report = report,
    FAMILY_MEMBERS(classic),
};
