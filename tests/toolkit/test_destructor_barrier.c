/* SPDX-License-Identifier: MIT */
/*
 * When prudence_cache_barrier() returns, the destructor of every object deferred before the call
 * has returned, no matter which thread held the object. The barrier returns even if other threads
 * go on deferring.
 *
 * ctest: small-pages (counts on slabs of few objects)
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include <prudence/call.h>

#include "toolkit/callbacks/callback_worker.h"
#include "toolkit/callbacks/destruct.h"
#include "toolkit/callbacks/destruct_worker.h"
#include "slab/reclaim/drain.h"
#include "slab/reclaim/drain_ring.h"
#include "support/slab_test.h"

#include "support/gp_child.h"
#include "support/gp_reader.h"

#define SIZE 64

enum what { NOTHING, COUNT, BLOCK, DEFER_NEXT, FORK };

struct object {
    enum what what;
    struct object *next;
};

static struct prudence_cache *cache;
static sem_t entered, leave;
static unsigned destroyed, began;
static pid_t forked;

static void destroy(void *at, void *unused)
{
    struct object *object = at;
    enum what what = object->what;

    object->what = NOTHING;
    __atomic_fetch_add(&began, 1, __ATOMIC_SEQ_CST);
    if (what == BLOCK) {
        sem_post(&entered);
        while (sem_wait(&leave))
            ;
    } else if (what == DEFER_NEXT && object->next) {
        prudence_cache_free_deferred(cache, object->next);
    } else if (what == FORK) {
        forked = fork();
    }
    __atomic_fetch_add(&destroyed, 1, __ATOMIC_SEQ_CST);
}

static struct object *make_one(enum what what)
{
    struct object *object = prudence_cache_alloc(cache);

    assert_non_null(object);
    *object = (struct object){.what = what};
    return object;
}

/* Makes all objects before deferring the first, because a later allocation could run its
 * destructor. */
static void defer_hundred(unsigned special, enum what what)
{
    struct object *objects[100];

    for (unsigned i = 0; i < 100; i++)
        objects[i] = make_one(i == special ? what : COUNT);
    for (unsigned i = 0; i < 100; i++)
        prudence_cache_free_deferred(cache, objects[i]);
}

static unsigned done(void)
{
    return __atomic_load_n(&destroyed, __ATOMIC_SEQ_CST);
}

static void make_cache(unsigned flags)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .flags = flags, .destructor = destroy};

    destroyed = began = 0;
    sem_init(&entered, 0, 0);
    sem_init(&leave, 0, 0);
    cache = prudence_cache_create("barrier", SIZE, &attr);
    assert_non_null(cache);
}

/* Releases the blocked destructor once a barrier waits, or has returned too early. */
static bool over;

static void *let_go_when_waited_for(void *unused)
{
    while (!__atomic_load_n(&destruct_of_cache(cache)->barrier_runner, __ATOMIC_SEQ_CST) &&
           !__atomic_load_n(&over, __ATOMIC_SEQ_CST))
        sched_yield();
    sem_post(&leave);
    return unused;
}

static void *allocate_until_it_blocks(void *unused)
{
    struct object *mine[512];
    unsigned count = 0;

    while (!__atomic_load_n(&began, __ATOMIC_SEQ_CST) && count < 512)
        mine[count++] = make_one(NOTHING);
    while (count)
        prudence_cache_free(cache, mine[--count]);
    return unused;
}

/* A barrier that gave up has ended no other, and the next one waits for all objects. */
static void ends_at_the_deadline(unsigned flags)
{
    struct held_reader reader = {.domain = NULL};

    make_cache(flags);
    assert_int_equal(prudence_cache_barrier_timed(cache, 0), 0);
    held_reader_start(&reader);
    defer_hundred(100, NOTHING);
    assert_int_equal(prudence_cache_barrier_timed(cache, 0), ETIMEDOUT);
    assert_int_equal(prudence_cache_barrier_timed(cache, 2000000), ETIMEDOUT);
    assert_int_equal(done(), 0);
    held_reader_end(&reader);
    assert_int_equal(prudence_cache_barrier_timed(cache, UINT64_MAX), 0);
    assert_int_equal(done(), 100);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

TEST(one_that_ends_at_its_deadline)
{
    ends_at_the_deadline(0);
    ends_at_the_deadline(PRUDENCE_CACHE_DESTRUCT_SOON);
}

TEST(one_for_memory_alone_ends_at_its_deadline)
{
    struct held_reader reader = {.domain = NULL};

    cache = prudence_cache_create("memory", SIZE, NULL);
    held_reader_start(&reader);
    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    assert_int_equal(prudence_cache_barrier_timed(cache, 2000000), ETIMEDOUT);
    held_reader_end(&reader);
    assert_int_equal(prudence_cache_barrier_timed(cache, UINT64_MAX), 0);
    assert_int_equal(prudence_cache_barrier_timed(NULL, 0), EINVAL);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

TEST(one_that_runs_in_an_allocation)
{
    pthread_t allocator, releaser;

    make_cache(0);
    over = false;
    prudence_cache_free_deferred(cache, make_one(BLOCK));
    prudence_synchronize();
    pthread_create(&allocator, NULL, allocate_until_it_blocks, NULL);
    while (sem_wait(&entered))
        ;
    pthread_create(&releaser, NULL, let_go_when_waited_for, NULL);
    assert_int_equal(prudence_cache_barrier(cache), 0);
    assert_true(done() >= 1);
    __atomic_store_n(&over, true, __ATOMIC_SEQ_CST);
    pthread_join(allocator, NULL);
    pthread_join(releaser, NULL);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* The library's worker is inside a destructor and holds other objects. */
TEST(one_that_runs_on_the_worker)
{
    pthread_t releaser;

    make_cache(PRUDENCE_CACHE_DESTRUCT_SOON);
    over = false;
    defer_hundred(0, BLOCK);
    while (sem_wait(&entered))
        ;
    pthread_create(&releaser, NULL, let_go_when_waited_for, NULL);
    assert_int_equal(prudence_cache_barrier(cache), 0);
    assert_int_equal(done(), 100);
    __atomic_store_n(&over, true, __ATOMIC_SEQ_CST);
    pthread_join(releaser, NULL);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* A thread that moves objects holds one, so that object is in no slab, no stack and no ring. */
static void *barrier(void *unused)
{
    assert_int_equal(prudence_cache_barrier(cache), 0);
    __atomic_store_n(&over, true, __ATOMIC_SEQ_CST);
    return unused;
}

TEST(one_on_its_way)
{
    static void *in_hand[1024];
    unsigned taken = 0;
    pthread_t waiter;

    make_cache(0);
    over = false;
    prudence_cache_free_deferred(cache, make_one(COUNT));
    drain_cache(cache, true);
    prudence_synchronize();
    drain_cache(cache, true);
    do /* as a refill does, until the taken objects include the deferred one */
        node_take_all(cache, node_here(cache), in_hand + taken, 1);
    while (destruct_epoch(slab_of(in_hand[taken]), in_hand[taken]) == DESTRUCT_NO_EPOCH && ++taken);
    taken++;
    pthread_create(&waiter, NULL, barrier, NULL);
    while (!__atomic_load_n(&destruct_of_cache(cache)->barrier_runner, __ATOMIC_SEQ_CST) &&
           !__atomic_load_n(&over, __ATOMIC_SEQ_CST))
        sched_yield();
    for (unsigned i = 0; i < 100; i++)
        sched_yield();
    assert_false(__atomic_load_n(&over, __ATOMIC_SEQ_CST)); /* the destructor has not run */
    assert_int_equal(done(), 0);
    node_flush(cache, in_hand, taken); /* as a refill puts back objects that did not fit */
    pthread_join(waiter, NULL);
    assert_int_equal(done(), 1);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

static bool stop;

static void *defer_all_the_time(void *unused)
{
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST))
        prudence_cache_free_deferred(cache, make_one(COUNT));
    return unused;
}

/* Barriers return, one or several at once, although deferrals never stop. */
static void *barriers_during_deferrals(void *unused)
{
    for (unsigned i = 0; i < 10; i++) {
        struct object *object = make_one(COUNT);

        prudence_cache_free_deferred(cache, object);
        assert_int_equal(prudence_cache_barrier(cache), 0);
    }
    return unused;
}

TEST(it_ends_during_deferrals)
{
    static const unsigned flags[] = {0, PRUDENCE_CACHE_DESTRUCT_SOON};
    pthread_t noise[2], waiters[2];

    for (unsigned i = 0; i < 2; i++) {
        make_cache(flags[i]);
        stop = false;
        for (unsigned t = 0; t < 2; t++)
            pthread_create(&noise[t], NULL, defer_all_the_time, NULL);
        for (unsigned t = 0; t < 2; t++)
            pthread_create(&waiters[t], NULL, barriers_during_deferrals, NULL);
        for (unsigned t = 0; t < 2; t++)
            pthread_join(waiters[t], NULL);
        __atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
        for (unsigned t = 0; t < 2; t++)
            pthread_join(noise[t], NULL);
        assert_int_equal(prudence_cache_barrier(cache), 0);
        assert_int_equal(done(), __atomic_load_n(&began, __ATOMIC_SEQ_CST));
        assert_int_equal(prudence_cache_destroy(cache), 0);
    }
}

/* Each destructor defers the next object of the cache. Destroying the cache ends the chain. */
TEST(destroy_follows_a_chain)
{
    struct object *first = NULL;

    make_cache(0);
    for (unsigned i = 0; i < 20; i++) {
        struct object *object = make_one(DEFER_NEXT);

        object->next = first;
        first = object;
    }
    prudence_cache_free_deferred(cache, first);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(done(), 20);
}

#if !defined(__SANITIZE_THREAD__) /* the worker reads callbacks_other_work without an atomic */

/* Moves the deferred objects to their slabs, where they count in the present epoch. */
static void leave_rings(void)
{
    for (unsigned i = 0; i < os_cpu_count(); i++)
        assert_true(drain_ring(cache, i, cpu_cache_of(cache, i)->line.ring_tail));
}

static void *destroys_some(void *unused)
{
    assert_int_equal(destruct_some(cache, true, DESTRUCT_BOTH_EPOCHS), 2);
    return unused;
}

/* So a barrier for the first does not wait for the second, which may wait for that barrier. */
TEST_FIRST(what_ended_does_not_count_while_one_of_the_next_epoch_runs)
{
    const uint64_t *pending;
    struct object *first, *second;
    pthread_t thread;

    callbacks_other_work = NULL; /* this test takes the worker's part; there is no worker yet */
    make_cache(0);
    pending = destruct_of_cache(cache)->pending;
    first = make_one(COUNT);
    second = make_one(COUNT);
    if (first > second) { /* destructors run in the order of addresses */
        struct object *lower = second;

        second = first;
        first = lower;
    }
    second->what = BLOCK;
    prudence_cache_free_deferred(cache, first);
    leave_rings();
    add_relaxed(&destruct_of_cache(cache)->pending_epoch, 1);
    prudence_cache_free_deferred(cache, second);
    drain_cache(cache, true); /* closes the batch */
    prudence_synchronize();
    drain_cache(cache, true);
    assert_int_equal(pending[0], 1);
    pthread_create(&thread, NULL, destroys_some, NULL);
    while (sem_wait(&entered))
        ;
    assert_int_equal(load_acquire(&pending[0]), 0);
    assert_int_equal(load_acquire(&pending[1]), 1);
    sem_post(&leave);
    pthread_join(thread, NULL);
    assert_int_equal(pending[1], 0);
    destruct_worker_start();
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

#endif

/* ----------------------------------------------------------------------------------------- fork */

#if !defined(__SANITIZE_THREAD__) /* it supports no threads in the child of a threaded process */

/* Objects that another thread ran or held are lost to the child; the child destroys the rest. */
static int barrier_in_the_child(void *unused)
{
    const uint64_t *pending = destruct_of_cache(cache)->pending;

    return prudence_cache_barrier(cache) == 0 && pending[0] + pending[1] == 0 ? 42 : 1;
}

TEST(a_child_does_not_wait_for_threads_that_it_does_not_have)
{
    make_cache(PRUDENCE_CACHE_DESTRUCT_SOON);
    defer_hundred(0, BLOCK);
    while (sem_wait(&entered))
        ;
    assert_child(barrier_in_the_child, NULL);
    sem_post(&leave);
    assert_int_equal(prudence_cache_barrier(cache), 0);
    assert_int_equal(done(), 100);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* The forking thread goes on in the child with the objects it held. */
TEST(a_destructor_forks)
{
    int status = -1;

    callbacks_other_work = NULL; /* the child would lose objects of the worker */
    make_cache(0);
    alarm(patience(60));
    defer_hundred(40, FORK);
    forked = -1;
    assert_int_equal(prudence_cache_barrier(cache), 0);
    if (forked == 0)
        _exit(done() == 100 && prudence_cache_destroy(cache) == 0 ? 42 : 1);
    assert_int_equal(done(), 100);
    assert_int_equal(waitpid(forked, &status, 0), forked);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

#endif

/* Also pins the threads made later, so that all use the same caches. */
SUITE(pin_thread(), alarm(patience(110)))
