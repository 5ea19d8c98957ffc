/* SPDX-License-Identifier: MIT */
/*
 * A destructor runs exactly once for each object freed or deferred. For deferred objects it runs
 * after the grace period, and before the memory is reused or goes back.
 *
 * ctest: inlined-too
 */
#include <errno.h>
#include <pthread.h>

#include <prudence/call.h>
#include <prudence/rcu.h>

#include "support/gp_reader.h"
#include "support/slab_test.h"

#define OBJECTS 3000
#define SIZE    200

static struct prudence_cache *cache;
static struct prudence_domain *domain;
static unsigned destroyed;
static uint64_t *objects[OBJECTS];
static unsigned last_thread;

static pthread_mutex_t may_destroy = PTHREAD_MUTEX_INITIALIZER;

static void destroy(void *object, void *context)
{
    uint64_t *words = object;

    pthread_mutex_lock(&may_destroy); /* the test may hold this lock for a while */
    pthread_mutex_unlock(&may_destroy);

    assert_ptr_equal(context, &destroyed);
    if (words[0] != 0xa11ce)
        abort(); /* destroyed twice, never allocated, or overwritten */
    words[0] = 0xdead;
    __atomic_store_n(&last_thread, (unsigned)gettid(), __ATOMIC_RELAXED);
    __atomic_fetch_add(&destroyed, 1, __ATOMIC_SEQ_CST);
}

static unsigned count(void)
{
    return __atomic_load_n(&destroyed, __ATOMIC_SEQ_CST);
}

static void make(unsigned flags, struct prudence_domain *of)
{
    struct prudence_cache_attr attr = {.size = sizeof attr,
                                       .flags = flags,
                                       .domain = of,
                                       .destructor = destroy,
                                       .context = &destroyed};

    destroyed = 0;
    cache = prudence_cache_create("destructor", SIZE, &attr);
    assert_non_null(cache);
}

static uint64_t *alloc_one(void)
{
    uint64_t *object = prudence_cache_alloc(cache);

    assert_int_not_equal(object[0], 0xa11ce);
    object[0] = 0xa11ce;
    return object;
}

static void make_all(void)
{
    for (unsigned i = 0; i < OBJECTS; i++)
        objects[i] = alloc_one();
}

static void retire_all(void)
{
    for (unsigned i = 0; i < OBJECTS; i++)
        prudence_cache_free_deferred(cache, objects[i]);
}

static void wait_for(unsigned wanted)
{
    for (unsigned i = 0; i < 5000 && count() != wanted; i++)
        pause_ms(1);
    assert_int_equal(count(), wanted);
}

TEST(a_freed_object_at_once)
{
    make(0, NULL);
    make_all();
    for (unsigned i = 0; i < OBJECTS; i++) {
        prudence_cache_free(cache, objects[i]);
        assert_int_equal(count(), i + 1);
    }
    assert_int_equal(last_thread, gettid());
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(count(), OBJECTS);
}

TEST(not_before_the_grace_period)
{
    domain = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
    make(PRUDENCE_CACHE_DESTRUCT_SOON, domain);
    make_all();
    retire_all();
    prudence_cache_shrink(cache);
    pause_ms(20);
    assert_int_equal(count(), 0);
    for (unsigned i = 0; i < 100 && count() < OBJECTS; i++) {
        prudence_manual_advance(domain);
        pause_ms(5);
    }
    wait_for(OBJECTS);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* Without PRUDENCE_CACHE_DESTRUCT_SOON, only reuse runs the destructors, in the allocating
 * thread. */
TEST(when_it_is_reused)
{
    make(0, NULL);
    for (unsigned i = 0; i < 20 * OBJECTS; i++)
        prudence_cache_free_deferred(cache, alloc_one());
    assert_in_range(count(), 1, 20 * OBJECTS - 1);
    assert_int_equal(last_thread, gettid());
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(count(), 20 * OBJECTS);
}

/* Excess slabs go back after the library's thread has run the destructors of their objects. */
TEST(when_a_slab_goes_back)
{
    struct prudence_cache_stats stats;

    prudence_option_set("decay", "0");
    make(0, NULL);
    for (unsigned round = 0; round < 4; round++) {
        make_all();
        retire_all();
        prudence_synchronize();
    }
    prudence_trim(); /* merges, and finds the slabs free */
    for (unsigned i = 0; i < 5000 && count() < 4 * OBJECTS; i++) {
        prudence_synchronize(); /* for batches that trimming has closed */
        prudence_trim();
        pause_ms(1);
    }
    assert_int_equal(count(), 4 * OBJECTS);
    assert_int_not_equal(last_thread, gettid());
    prudence_trim();
    prudence_cache_stats(cache, &stats);
    assert_int_equal(stats.slabs_now, 0);
    assert_int_equal(stats.objects_live, 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    prudence_option_set("decay", "100ms");
}

/* All objects of a slab wait for their destructors, so a caller that may run none gets an object of
 * a new slab, which counts like all others. */
TEST(a_new_slab_in_a_section)
{
    struct prudence_cache_stats stats;
    uint64_t **all, *other;
    unsigned capacity;

    make(0, NULL);
    capacity = cache->body->capacity;
    all = calloc(capacity, sizeof *all);
    for (unsigned i = 0; i < capacity; i++)
        all[i] = alloc_one();
    for (unsigned i = 0; i < capacity; i++)
        prudence_cache_free_deferred(cache, all[i]);
    prudence_synchronize();
    pthread_mutex_lock(&may_destroy); /* keeps the worker from being first */
    prudence_read_lock();
    other = alloc_one();
    prudence_read_unlock();
    prudence_cache_stats(cache, &stats);
    pthread_mutex_unlock(&may_destroy);
    assert_int_equal(stats.grows, 2);
    assert_int_equal(stats.slabs_now, 2);
    prudence_cache_free(cache, other);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    free(all);
}

TEST(soon)
{
    make(PRUDENCE_CACHE_DESTRUCT_SOON, NULL);
    for (unsigned round = 1; round <= 5; round++) {
        make_all();
        retire_all();
        wait_for(round * OBJECTS);
    }
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(count(), 5 * OBJECTS);
}

TEST(barrier_waits_for_all)
{
    make(0, NULL);
    assert_int_equal(prudence_cache_barrier(NULL), EINVAL);
    make_all();
    retire_all();
    assert_int_equal(prudence_cache_barrier(cache), 0);
    assert_int_equal(count(), OBJECTS);
    prudence_read_lock();
    assert_int_equal(prudence_cache_barrier(cache), EDEADLK);
    prudence_read_unlock();
    objects[0] = alloc_one();
    assert_int_equal(prudence_cache_destroy(cache), EBUSY);
    prudence_cache_free(cache, objects[0]);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(count(), OBJECTS + 1);
}

/* Without a destructor, the barrier waits until everything is merged. */
TEST(barrier_of_a_plain_cache)
{
    struct prudence_cache *plain = prudence_cache_create("plain", SIZE, NULL);
    struct prudence_cache_stats stats;

    for (unsigned i = 0; i < OBJECTS; i++)
        prudence_cache_free_deferred(plain, prudence_cache_alloc(plain));
    assert_int_equal(prudence_cache_barrier(plain), 0);
    prudence_cache_stats(plain, &stats);
    assert_int_equal(stats.objects_latent, 0);
    assert_int_equal(prudence_cache_destroy(plain), 0);
}

TEST(bad_attributes)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .flags = PRUDENCE_CACHE_DESTRUCT_SOON};

    assert_null(prudence_cache_create("soon what", SIZE, &attr));
    assert_int_equal(errno, EINVAL);
    attr.flags = 0;
    attr.size = offsetof(struct prudence_cache_attr, destructor); /* as an older header has it */
    cache = prudence_cache_create("old", SIZE, &attr);
    assert_non_null(cache);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

static void *storm(void *unused)
{
    uint64_t *mine[64] = {0};

    for (unsigned i = 0; i < 40000; i++) {
        unsigned place = i * 7 % 64;

        if (mine[place] && i % 3)
            prudence_cache_free_deferred(cache, mine[place]);
        else if (mine[place])
            prudence_cache_free(cache, mine[place]);
        mine[place] = alloc_one();
        if (i % 10000 == 0)
            prudence_cache_shrink(cache);
    }
    for (unsigned i = 0; i < 64; i++)
        prudence_cache_free_deferred(cache, mine[i]);
    return unused;
}

TEST(many_threads)
{
    static const unsigned flags[] = {0, PRUDENCE_CACHE_DESTRUCT_SOON};

    for (unsigned i = 0; i < 2; i++) {
        pthread_t threads[4];

        make(flags[i], NULL);
        for (unsigned t = 0; t < 4; t++)
            pthread_create(&threads[t], NULL, storm, NULL);
        for (unsigned t = 0; t < 4; t++)
            pthread_join(threads[t], NULL);
        assert_int_equal(prudence_cache_destroy(cache), 0);
        assert_int_equal(count(), 4 * 40000);
    }
}

SUITE()
