/* SPDX-License-Identifier: MIT */
/*
 * A cache is destroyed while another thread flushes the quarantine and holds objects of that cache,
 * possibly without knowing the cache. The objects are not live, so the destroy returns no EBUSY;
 * and the cache must stay until the flushing thread is done with it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

#include "guard/quarantine.h"
#include "slab/gate.h"
#include "support/patience.h"
#include "support/slab_test.h"

#define OBJECTS 10

static struct prudence_cache *cache;
static sem_t in_hand, go_on;
static bool destroying, was_there;

static void leave_slowly(struct slab *slab, void *object)
{
    static bool once;

    if (!once) {
        once = true;
        sem_post(&in_hand);
        while (sem_wait(&go_on))
            ;
    }
    was_there &= slab->cache == cache; /* still our memory */
    gate_put_kept(slab, object);
}

static void *flush(void *unused)
{
    quarantine_flush_to(leave_slowly);
    return unused;
}

/* Lets the flusher go on when the destroyer sleeps because it cannot go on alone. Too late if the
 * destroy failed before. */
static void *let_go(void *unused)
{
    while (!__atomic_load_n(&destroying, __ATOMIC_SEQ_CST))
        sched_yield();
    for (unsigned i = 0; i < 1000; i++)
        sched_yield();
    sem_post(&go_on);
    return unused;
}

TEST(objects_in_another_thread_s_hands)
{
    void *objects[OBJECTS];
    pthread_t flusher, releaser;

    assert_int_equal(prudence_option_set("quarantine", "1M"), 0);
    cache = prudence_cache_create("quarantined", 64, NULL);
    allocate_all(cache, objects, OBJECTS);
    free_all(cache, objects, OBJECTS);
    was_there = true;
    pthread_create(&flusher, NULL, flush, NULL);
    while (sem_wait(&in_hand))
        ;
    pthread_create(&releaser, NULL, let_go, NULL);
    __atomic_store_n(&destroying, true, __ATOMIC_SEQ_CST);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    pthread_join(flusher, NULL);
    pthread_join(releaser, NULL);
    assert_true(was_there);
}

/* A flush of the quarantine ends even if another thread goes on freeing. */
static bool stop;

static void *free_all_the_time(void *unused)
{
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST))
        prudence_free(prudence_malloc(100));
    return unused;
}

TEST(trims_end)
{
    pthread_t thread;

    pthread_create(&thread, NULL, free_all_the_time, NULL);
    for (unsigned i = 0; i < 50; i++) {
        struct prudence_cache *other = prudence_cache_create("other", 64, NULL);
        void *object = prudence_cache_alloc(other);

        prudence_cache_free(other, object);
        prudence_trim();
        assert_int_equal(prudence_cache_destroy(other), 0);
    }
    __atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
}

SUITE(alarm(patience(110)))
