/* SPDX-License-Identifier: MIT */
/*
 * Common parts of the tortures of tables. Objects have a mark (gp_torture.h) and a key, and live in
 * `cache`, of the default domain. An object that a reader finds is live, or was retired in a grace
 * period that is not over, and has the key that the reader searched for.
 */
#ifndef TESTS_SUPPORT_TORTURE_OBJECTS_H
#define TESTS_SUPPORT_TORTURE_OBJECTS_H

#include "support/gp_torture.h"

/* First member of a torture's own objects. */
struct torture_object {
    struct torture_mark mark;
    uint64_t key; /* atomic, because a late reader reads it at the same time as the next owner */
};

static struct prudence_cache *cache;
static uint64_t torture_births, torture_found_retired;
TORTURE_UNUSED static uint64_t lookups, walks, updates; /* of all threads */

static void *object_make(uint64_t key)
{
    struct torture_object *object = prudence_cache_alloc(cache);

    torture_check_reuse(&object->mark, prudence_default_domain());
    __atomic_store_n(&object->mark.birth, __atomic_add_fetch(&torture_births, 1, __ATOMIC_RELAXED),
                     __ATOMIC_RELAXED);
    torture_mark_set(&object->mark, TORTURE_LIVE, 0);
    __atomic_store_n(&object->key, key, __ATOMIC_RELAXED);
    return object;
}

/* Retires an object that only this thread unlinked, outside of any section; NULL: there is none. */
static void object_retire(void *unlinked)
{
    struct torture_object *object = unlinked;
    uint64_t live = TORTURE_LIVE;

    if (!object)
        return;
    if (!__atomic_compare_exchange_n(&object->mark.state, &live, (uint64_t)TORTURE_RETIRED, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        torture_violation("object %p was removed twice", unlinked);
    torture_mark_set(&object->mark, TORTURE_RETIRED, prudence_gp_get_state().private_value);
    prudence_cache_free_deferred(cache, object);
}

/* Frees an object that was in no table; NULL: there is none. */
static void object_unmake(void *fresh)
{
    struct torture_object *object = fresh;

    if (!object)
        return;
    torture_mark_set(&object->mark, TORTURE_NEW, 0);
    prudence_cache_free(cache, object);
}

/* Checks an object that a reader has just found, inside the section, and returns the object's
 * key. */
static uint64_t object_seen(const void *found)
{
    const struct torture_object *object = found;
    uint64_t state = __atomic_load_n(&object->mark.state, __ATOMIC_RELAXED);

    if (state == TORTURE_RETIRED) {
        uint64_t cookie = __atomic_load_n(&object->mark.cookie, __ATOMIC_RELAXED);

        __atomic_fetch_add(&torture_found_retired, 1, __ATOMIC_RELAXED);
        if (cookie && gp_poll(prudence_default_domain(), (gp_cookie){cookie}))
            torture_violation("object %p is found after its grace period", found);
    } else if (state != TORTURE_LIVE) {
        torture_violation("object %p is found in state %llx", found, (unsigned long long)state);
    }
    return __atomic_load_n(&object->key, __ATOMIC_RELAXED);
}

/* Returns the object, or NULL, which the reader has found for this key. */
TORTURE_UNUSED static void *object_of_key(void *found, uint64_t key)
{
    if (found && object_seen(found) != key)
        torture_violation("object %p is found for another key", found);
    return found;
}

/* ------------------------------------------------------------------------------------------ run */

TORTURE_UNUSED static uint64_t torture_end_of(double seconds)
{
    return torture_now() + (uint64_t)(seconds * 1e9);
}

TORTURE_UNUSED static void torture_sleep_until(uint64_t end)
{
    while (torture_now() < end)
        torture_sleep_us(10000);
}

/* Checks latent_ceiling after a run in which readers stayed. */
TORTURE_UNUSED static void torture_check_limit(void)
{
    struct prudence_stats stats;

    prudence_stats(&stats);
    TORTURE_CHECK(stats.throttle_expiries == 0);
    TORTURE_CHECK(stats.latent_overruns == 0);
    if (stats.bytes_latent_peak > stats.latent_ceiling)
        torture_violation("the account was at %llu bytes, the limit is %llu",
                          (unsigned long long)stats.bytes_latent_peak,
                          (unsigned long long)stats.latent_ceiling);
    TORTURE_SAY({"peak K", stats.bytes_latent_peak >> 10}, {"waits", stats.throttle_waits});
}

#endif /* TESTS_SUPPORT_TORTURE_OBJECTS_H */
