/* SPDX-License-Identifier: MIT */
/*
 * Objects in a ring are pending without a bit and without being counted. A thread whose stack is
 * empty takes a hand of them, destroys all, and puts them on its stack, on which nothing is
 * pending. The library's worker takes out of rings only objects that stay there.
 *
 * ctest: small-pages (counts on slabs of few objects)
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include <prudence/call.h>

#include "gp/user/domain.h"
#include "slab/latent_cache.h"
#include "slab/reclaim/drain.h"
#include "slab/reclaim/drain_ring.h"
#include "slab/reclaim/limit.h"
#include "slab/reuse.h"
#include "support/slab_test.h"
#include "toolkit/callbacks/callback_worker.h"
#include "toolkit/callbacks/destruct.h"
#include "toolkit/callbacks/destruct_hand.h"

#include "support/gp_child.h"

#define SIZE    64
#define OBJECTS 100

static struct prudence_cache *cache;
static void *objects[OBJECTS];
static unsigned destroyed, began, blocks_at; /* blocks_at: number of a destructor, from 1 */
static sem_t entered, leave;
static enum callback_turn (*worker_turn)(void);

static void destroy(void *object, void *unused)
{
    (void)object, (void)unused;
    if (__atomic_add_fetch(&began, 1, __ATOMIC_SEQ_CST) == blocks_at) {
        sem_post(&entered);
        while (sem_wait(&leave))
            ;
    }
    __atomic_fetch_add(&destroyed, 1, __ATOMIC_SEQ_CST);
}

/* Makes a cache, and defers `count` objects. */
static void make_in(struct prudence_domain *domain, unsigned flags, unsigned count)
{
    struct prudence_cache_attr attr = {.size = sizeof attr,
                                       .flags = flags,
                                       .destructor = destroy,
                                       .domain = domain,
                                       .object_cache_bytes = (size_t)4 * OBJECTS * SIZE};

    destroyed = began = blocks_at = 0;
    sem_init(&entered, 0, 0);
    sem_init(&leave, 0, 0);
    cache = prudence_cache_create("hands", SIZE, &attr);
    assert_non_null(cache);
    allocate_all(cache, objects, OBJECTS);
    while (stack_count(&cpu_here(cache)->line))
        assert_non_null(prudence_cache_alloc(cache)); /* stays live */
    defer_all(cache, objects, count);
}

static void make_and_defer(unsigned flags, unsigned count)
{
    make_in(manual_domain(), flags, count);
}

static void close_and_end(void)
{
    struct cpu_cache *cpu = cpu_cache_take(cache, &cache);

    latent_cache_close(cache, cpu);
    cpu_cache_release(cpu);
    prudence_manual_advance(cache->domain);
}

static uint64_t pending(void)
{
    return destruct_pending(cache);
}

/* Leaves the cache behind, which has live objects, but nothing for the worker. */
static void finish(void)
{
    if (cache->domain != &prudence_default) {
        assert_true(drain_ring(cache, cpu_here(cache)->line.cpu, cpu_here(cache)->line.ring_tail));
        prudence_manual_advance(cache->domain);
    }
    assert_int_equal(prudence_cache_barrier(cache), 0);
    assert_int_equal(destroyed, began);
    check_books(cache);
}

static void *alloc_one(void *unused)
{
    (void)unused;
    return prudence_cache_alloc(cache);
}

TEST(a_ring_implies_that_an_object_is_pending)
{
    make_and_defer(0, 3);
    assert_int_equal(pending(), 0);
    assert_int_equal(destruct_epoch(slab_of(objects[0]), objects[0]), DESTRUCT_NO_EPOCH);
    assert_true(drain_ring(cache, cpu_here(cache)->line.cpu, cpu_here(cache)->line.ring_tail));
    assert_int_equal(latent_cache_count(cpu_here(cache)), 0);
    assert_int_equal(pending(), 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(destruct_epoch(slab_of(objects[i]), objects[i]), 0);
    assert_int_equal(destroyed, 0);
    prudence_manual_advance(cache->domain);
    drain_cache(cache, false);
    assert_int_equal(destruct_some(cache, true, DESTRUCT_BOTH_EPOCHS), 3);
    assert_int_equal(destroyed, 3);
    assert_int_equal(pending(), 0);
    finish();
}

/* Those that a drain finds safe are pending in their slab, too. */
TEST(safe_objects_that_leave_a_ring_are_pending)
{
    make_and_defer(0, 3);
    close_and_end();
    drain_cache(cache, true);
    assert_int_equal(latent_cache_count(cpu_here(cache)), 0);
    assert_int_equal(pending(), 3);
    assert_int_equal(destruct_some(cache, true, DESTRUCT_BOTH_EPOCHS), 3);
    assert_int_equal(destroyed, 3);
    finish();
}

TEST(a_hand_is_destroyed_at_once)
{
    unsigned batch;

    make_and_defer(0, OBJECTS);
    close_and_end();
    batch = (unsigned)min_size(REUSE_MAX, cache->body->batch);
    for (unsigned i = 0; i < batch; i++) {
        assert_non_null(prudence_cache_alloc(cache));
        assert_int_equal(destroyed, batch);
    }
    assert_int_equal(pending(), 0);
    assert_non_null(prudence_cache_alloc(cache));
    assert_true(destroyed > batch);
    finish();
}

/* Objects that a refill takes out of slabs are destroyed before they are on the stack. */
TEST(a_refill_destroys_before_it_stacks)
{
    make_and_defer(0, 20);
    close_and_end();
    drain_cache(cache, true);
    for (unsigned i = 0; i < 20 && !destroyed; i++)
        assert_non_null(prudence_cache_alloc(cache));
    assert_true(destroyed > 0);
    for (unsigned i = 0; i < stack_count(&cpu_here(cache)->line); i++) {
        void *object = cpu_here(cache)->line.stack[i];

        assert_int_equal(destruct_epoch(slab_of(object), object), DESTRUCT_NO_EPOCH);
    }
    assert_int_equal(pending(), 20 - destroyed);
    finish();
}

/* In a read-side section nothing is destroyed: stacks are used, rings and pending objects of slabs
 * stay. */
TEST(a_section_gets_objects_that_need_nothing)
{
    make_and_defer(0, 20);
    close_and_end();
    prudence_read_lock();
    for (unsigned i = 0; i < OBJECTS; i++)
        assert_non_null(prudence_cache_alloc(cache));
    assert_int_equal(destroyed, 0);
    assert_int_equal(latent_cache_count(cpu_here(cache)), 20);
    drain_cache(cache, true);
    for (unsigned i = 0; i < OBJECTS; i++)
        assert_non_null(prudence_cache_alloc(cache));
    prudence_read_unlock();
    assert_int_equal(destroyed, 0);
    assert_int_equal(pending(), 20);
    finish();
}

/* An object that never fits under the limit waits in the deferral, which does not destroy it. */
TEST(past_the_limit)
{
    void *object;

    make_in(NULL, 0, 0);
    object = objects[0];
    assert_int_equal(prudence_option_set("latent_limit", "16"), 0);
    prudence_cache_free_deferred(cache, object);
    assert_int_equal(prudence_option_set("latent_limit", "0"), 0);
    assert_int_equal(destroyed, 0);
    assert_int_equal(stack_count(&cpu_here(cache)->line), 0);
    assert_int_equal(pending(), 1);
    assert_int_equal(destruct_epoch(slab_of(object), object), 0);
    finish();
}

/* A deferral past the ring that finds no room under the limit has changed nothing: the object may
 * come to a ring later. */
TEST(a_refused_deferral_marks_nothing)
{
    unsigned reserved = 0;

    make_and_defer(0, 0);
    assert_int_equal(prudence_option_set("latent_limit", "16K"), 0);
    while (limit_reserve(0, SIZE))
        reserved++;
    assert_false(node_put_latent(slab_of(objects[0]), objects[0], false));
    assert_int_equal(destruct_epoch(slab_of(objects[0]), objects[0]), DESTRUCT_NO_EPOCH);
    assert_int_equal(pending(), 0);
    limit_release(0, (size_t)reserved * SIZE);
    assert_int_equal(prudence_option_set("latent_limit", "0"), 0);
    assert_true(node_put_latent(slab_of(objects[0]), objects[0], false));
    assert_int_equal(pending(), 1);
    finish();
}

/* A barrier that finds the ring of another thread's hand empty finds the hand counted. */
TEST(a_hand_counts_until_it_is_destroyed)
{
    pthread_t thread;

    make_and_defer(0, 3);
    close_and_end();
    blocks_at = 2;
    pthread_create(&thread, NULL, alloc_one, NULL);
    while (sem_wait(&entered))
        ;
    assert_int_equal(latent_cache_count(cpu_here(cache)), 0);
    assert_int_equal(pending(), 3);
    assert_false(destruct_hands_have(objects[0]));
    assert_false(destruct_hands_have(objects[1]));
    assert_true(destruct_hands_have(objects[2]));
    assert_int_equal(prudence_cache_barrier_timed(cache, 1000000), ETIMEDOUT);
    sem_post(&leave);
    pthread_join(thread, NULL);
    assert_int_equal(pending(), 0);
    assert_false(destruct_hands_have(objects[2]));
    assert_int_equal(prudence_cache_barrier_timed(cache, 1000000), 0);
    assert_int_equal(destroyed, 3);
    finish();
}

static void defer_twice(void)
{
    make_and_defer(0, 3);
    prudence_cache_free_deferred(cache, objects[0]);
    close_and_end();
    drain_cache(cache, true);
}

TEST(a_double_deferral_is_reported)
{
    expect_death(defer_twice(), "double free", "of cache 'hands'");
}

/* -------------------------------------------------------------------------------------- worker */

static enum callback_turn look_now(void)
{
    destruct_of_cache(cache)->looked_at = 0;
    destruct_wanted = 1;
    return worker_turn();
}

/* Objects that a ring had at the last check are taken, later ones stay. */
TEST(the_worker_takes_objects_that_stay)
{
    make_and_defer(PRUDENCE_CACHE_DESTRUCT_SOON, 2);
    close_and_end();
    look_now();
    assert_int_equal(destroyed, 0);
    assert_int_equal(latent_cache_count(cpu_here(cache)), 2);
    defer_all(cache, objects + 2, 3);
    close_and_end();
    assert_int_equal(look_now(), CALLBACK_TURN_RAN);
    assert_int_equal(destroyed, 2);
    assert_int_equal(latent_cache_count(cpu_here(cache)), 3);
    assert_int_equal(look_now(), CALLBACK_TURN_RAN);
    assert_int_equal(destroyed, 5);
    finish();
}

/* Nor does it check more often than said, or take objects that are not safe. */
TEST(the_worker_pauses)
{
    make_and_defer(PRUDENCE_CACHE_DESTRUCT_SOON, 2);
    look_now();
    assert_int_equal(look_now(), CALLBACK_TURN_WAITS);
    assert_int_equal(latent_cache_count(cpu_here(cache)), 2);
    close_and_end();
    destruct_of_cache(cache)->looked_at = os_clock_ns() + 1000000000;
    destruct_of_cache(cache)->looked_at -= 1000000000; /* just now */
    destruct_wanted = 1;
    assert_int_equal(worker_turn(), CALLBACK_TURN_LATER);
    assert_int_equal(destroyed, 0);
    assert_int_equal(look_now(), CALLBACK_TURN_RAN);
    assert_int_equal(destroyed, 2);
    finish();
}

/* While there is something to watch, deferrals need not notify the worker; afterwards the next one
 * does. */
TEST(the_worker_watches)
{
    make_and_defer(PRUDENCE_CACHE_DESTRUCT_SOON, 2);
    assert_int_equal(reuse_watched[1], destruct_hands_use_membarrier());
    close_and_end();
    look_now();
    assert_int_equal(look_now(), CALLBACK_TURN_RAN);
    while (worker_turn() != CALLBACK_TURN_EMPTY)
        ;
    assert_int_equal(reuse_watched[1], 0);
    assert_int_equal(destruct_wanted, 0);
    defer_all(cache, objects + 2, 1);
    assert_int_equal(reuse_watched[1], destruct_hands_use_membarrier());
    assert_int_equal(destruct_wanted, 1);
    assert_int_equal(prudence_cache_barrier_timed(cache, 0), ETIMEDOUT);
    finish();
}

/* ---------------------------------------------------------------------------------------- fork */

#if !defined(__SANITIZE_THREAD__) /* it supports no threads in the child of a threaded process */

static int destroys_the_rest(void *unused)
{
    unsigned before = destroyed;

    (void)unused;
    prudence_manual_advance(cache->domain);
    return prudence_cache_barrier(cache) == 0 && pending() == 0 && began == destroyed + 1 &&
                   destroyed - before == 10 - 4 && !destruct_runs
               ? 42
               : 1;
}

/* A thread has a hand of ten, and is in the fourth destructor. The child destroys the six
 * others. */
TEST(a_child_destroys_the_rest_of_a_hand)
{
    pthread_t thread;

    make_and_defer(0, 10);
    close_and_end();
    blocks_at = 4;
    pthread_create(&thread, NULL, alloc_one, NULL);
    while (sem_wait(&entered))
        ;
    assert_int_equal(pending(), 10);
    assert_child(destroys_the_rest, NULL);
    sem_post(&leave);
    pthread_join(thread, NULL);
    assert_int_equal(destroyed, 10);
    finish();
}

static int destroys_the_ring(void *unused)
{
    (void)unused;
    return pending() == 0 && prudence_cache_barrier(cache) == 0 && destroyed == 10 ? 42 : 1;
}

TEST(a_child_has_the_ring)
{
    make_and_defer(0, 10);
    close_and_end();
    assert_child(destroys_the_ring, NULL);
    finish();
}

#endif

/* While the process is copied, no destructor begins. */
TEST(none_begins_during_a_fork)
{
    pthread_t thread;

    make_and_defer(0, 3);
    close_and_end();
    destruct_hands_hold();
    pthread_create(&thread, NULL, alloc_one, NULL);
    for (unsigned i = 0; i < 20; i++)
        os_sleep_ns(1000000);
    if (destruct_hands_use_membarrier())
        assert_int_equal(__atomic_load_n(&began, __ATOMIC_SEQ_CST), 0);
    destruct_hands_let_go();
    pthread_join(thread, NULL);
    assert_int_equal(destroyed, 3);
    finish();
}

/* This test takes the worker's part. */
static void take_the_workers_part(void)
{
    prudence_free(prudence_malloc(1));
    worker_turn = callbacks_other_work;
    callbacks_other_work = NULL;
}

/* Also pins the threads made later, so that all use the same caches. */
SUITE(pin_thread(), take_the_workers_part(), alarm(patience(110)))
