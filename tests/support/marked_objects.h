/* SPDX-License-Identifier: MIT */
/*
 * Threads that use one cache and one counter in turns, under conditions that the test creates. An
 * object handed out twice carries the mark of another thread.
 */
#ifndef TESTS_SUPPORT_MARKED_OBJECTS_H
#define TESTS_SUPPORT_MARKED_OBJECTS_H

#include <pthread.h>

#include <prudence/counter.h>

#include "support/slab_test.h"

#define MARKED_EACH         16 /* objects per turn */
#define MARKED_THREADS_MOST 8

static struct prudence_cache *marked_cache;
static struct prudence_counter *marked_counter;
static unsigned marked_faults; /* atomic */

static void mark(void *object, uintptr_t from, uintptr_t to)
{
    if (__atomic_exchange_n((uintptr_t *)object, to, __ATOMIC_SEQ_CST) != from)
        __atomic_fetch_add(&marked_faults, 1, __ATOMIC_RELAXED);
}

/* Allocates, counts, frees and defers. `me` is nonzero and differs in each thread. */
static void marked_turn(uintptr_t me)
{
    void *objects[MARKED_EACH];

    for (unsigned i = 0; i < MARKED_EACH; i++) {
        objects[i] = prudence_cache_alloc(marked_cache);
        mark(objects[i], 0, me);
        prudence_counter_add(marked_counter, 1);
    }
    for (unsigned i = 0; i < MARKED_EACH; i++) {
        mark(objects[i], me, 0);
        if (i % 2)
            prudence_cache_free(marked_cache, objects[i]);
        else
            prudence_cache_free_deferred(marked_cache, objects[i]);
    }
}

static void marked_zero(void *object, void *context)
{
    (void)context;
    memset(object, 0, 64);
}

/* Runs `work` in `count` threads, each of which gets a number and takes `turns` turns. Checks that
 * no object and no count is lost. */
static void marked_threads(unsigned count, unsigned turns, void *(*work)(void *me))
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .constructor = marked_zero};
    pthread_t threads[MARKED_THREADS_MOST];

    marked_cache = prudence_cache_create("marked", 64, &attr);
    marked_counter = prudence_counter_create();
    for (uintptr_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(marked_faults, 0);
    assert_int_equal(prudence_counter_sum(marked_counter), count * turns * MARKED_EACH);
    prudence_counter_destroy(marked_counter);
    prudence_synchronize();
    prudence_trim();
    check_books(marked_cache);
    destroy_empty(marked_cache);
}

#endif /* TESTS_SUPPORT_MARKED_OBJECTS_H */
