/* SPDX-License-Identifier: MIT */
/*
 * What the tortures of tables have in common. Objects: with a mark (gp_torture.h) and a key, in a cache of the default domain. What a
 * reader finds is live, or was retired in a grace period that is not over, and has the key that the reader looked for.
 * And the threads: so many readers and writers, until a time.
 */
#ifndef TESTS_SUPPORT_TORTURE_OBJECTS_H
#define TESTS_SUPPORT_TORTURE_OBJECTS_H

#include "support/gp_torture.h"

static uint64_t torture_births, torture_found_retired;

/* An object that was just handed out. Its key is atomic, because a thread that looks too late reads it beside the next owner. */
TORTURE_UNUSED static void torture_object_begin(struct torture_mark *mark, uint64_t *place,
                                                uint64_t key)
{
    torture_check_reuse(mark, prudence_default_domain());
    __atomic_store_n(&mark->birth, __atomic_add_fetch(&torture_births, 1, __ATOMIC_RELAXED),
                     __ATOMIC_RELAXED);
    torture_mark_set(mark, TORTURE_LIVE, 0);
    __atomic_store_n(place, key, __ATOMIC_RELAXED);
}

/* Before it is deferred: unlinked by this thread alone. */
TORTURE_UNUSED static void torture_object_retire(struct torture_mark *mark)
{
    uint64_t live = TORTURE_LIVE;

    if (!__atomic_compare_exchange_n(&mark->state, &live, (uint64_t)TORTURE_RETIRED, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        torture_violation("object %p was removed twice", (void *)mark);
    torture_mark_set(mark, TORTURE_RETIRED, prudence_gp_get_state().private_value);
}

/* By a reader that has just found it, inside its section. Returns its key. */
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

/* -------------------------------------------------------------- the threads that work on a table */

struct torture_crew {
    pthread_t threads[64];
    unsigned count;
};

/* Readers get numbers from 1 on; writers from `first` on. */
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

/* Of latent_limit, behind a run in which readers stayed. */
TORTURE_UNUSED static void torture_check_limit(void)
{
    struct prudence_stats stats;

    prudence_stats(&stats);
    TORTURE_CHECK(stats.throttle_expiries == 0);
    TORTURE_CHECK(stats.latent_overruns == 0);
    if (stats.bytes_latent_peak > stats.latent_limit)
        torture_violation("the account was at %llu bytes, the limit is %llu",
                          (unsigned long long)stats.bytes_latent_peak,
                          (unsigned long long)stats.latent_limit);
    printf(": peak=%llu K waits=%llu", (unsigned long long)stats.bytes_latent_peak >> 10,
           (unsigned long long)stats.throttle_waits);
}

#endif /* TESTS_SUPPORT_TORTURE_OBJECTS_H */
