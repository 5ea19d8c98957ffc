/* SPDX-License-Identifier: MIT */
/*
 * Common parts of the tortures of tables. Objects have a mark (gp_torture.h) and a key, and live in
 * a cache of the default domain. An object that a reader finds is live, or was retired in a grace
 * period that is not over, and has the key that the reader looked for. Also the reader and writer
 * threads.
 */
#ifndef TESTS_SUPPORT_TORTURE_OBJECTS_H
#define TESTS_SUPPORT_TORTURE_OBJECTS_H

#include "support/gp_torture.h"

static uint64_t torture_births, torture_found_retired;

/* Starts the life of an object that was just handed out. The key is atomic, because a thread that
 * reads too late would race with the next owner. */
TORTURE_UNUSED static void torture_object_begin(struct torture_mark *mark, uint64_t *place,
                                                uint64_t key)
{
    torture_check_reuse(mark, prudence_default_domain());
    __atomic_store_n(&mark->birth, __atomic_add_fetch(&torture_births, 1, __ATOMIC_RELAXED),
                     __ATOMIC_RELAXED);
    torture_mark_set(mark, TORTURE_LIVE, 0);
    __atomic_store_n(place, key, __ATOMIC_RELAXED);
}

/* Retires an object before its deferral. This thread alone has unlinked it. */
TORTURE_UNUSED static void torture_object_retire(struct torture_mark *mark)
{
    uint64_t live = TORTURE_LIVE;

    if (!__atomic_compare_exchange_n(&mark->state, &live, (uint64_t)TORTURE_RETIRED, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        torture_violation("object %p was removed twice", (void *)mark);
    torture_mark_set(mark, TORTURE_RETIRED, prudence_gp_get_state().private_value);
}

/* Checks an object that a reader has just found, inside the section, and returns the object's
 * key. */
TORTURE_UNUSED static uint64_t torture_object_seen(const struct torture_mark *mark,
                                                   const uint64_t *place)
{
    uint64_t state = __atomic_load_n(&mark->state, __ATOMIC_RELAXED);

    if (state == TORTURE_RETIRED) {
        uint64_t cookie = __atomic_load_n(&mark->cookie, __ATOMIC_RELAXED);

        __atomic_fetch_add(&torture_found_retired, 1, __ATOMIC_RELAXED);
        if (cookie && gp_poll(prudence_default_domain(), (gp_cookie){cookie}))
            torture_violation("object %p is found after its grace period", (const void *)mark);
    } else if (state != TORTURE_LIVE) {
        torture_violation("object %p is found in state %llx", (const void *)mark,
                          (unsigned long long)state);
    }
    return __atomic_load_n(place, __ATOMIC_RELAXED);
}

TORTURE_UNUSED static void torture_object_look(const struct torture_mark *mark,
                                               const uint64_t *place, uint64_t key)
{
    if (torture_object_seen(mark, place) != key)
        torture_violation("object %p is found for another key", (const void *)mark);
}

/* ------------------------------------------------------------- the threads that work on a table */

struct torture_crew {
    pthread_t threads[64];
    unsigned count;
};

/* Starts the threads. Readers get numbers from 1 on, writers from `first` on. */
TORTURE_UNUSED static void torture_crew_start(struct torture_crew *crew,
                                              void *(*reader)(void *number), unsigned readers,
                                              void *(*writer)(void *number), unsigned writers,
                                              uintptr_t first)
{
    crew->count = 0;
    for (uintptr_t i = 0; i < readers; i++)
        crew->threads[crew->count++] = torture_thread(reader, (void *)(i + 1));
    for (uintptr_t i = 0; i < writers; i++)
        crew->threads[crew->count++] = torture_thread(writer, (void *)(first + i));
}

TORTURE_UNUSED static void torture_sleep_until(uint64_t end)
{
    while (torture_now() < end)
        torture_sleep_us(10000);
}

TORTURE_UNUSED static void torture_crew_stop(struct torture_crew *crew)
{
    torture_stop();
    while (crew->count)
        pthread_join(crew->threads[--crew->count], NULL);
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
    printf(": peak=%llu K waits=%llu", (unsigned long long)stats.bytes_latent_peak >> 10,
           (unsigned long long)stats.throttle_waits);
}

#endif /* TESTS_SUPPORT_TORTURE_OBJECTS_H */
