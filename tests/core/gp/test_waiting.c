/* SPDX-License-Identifier: MIT */
/*
 * Implicit waits (DESIGN, Waiting): deferring never deadlocks, whatever locks its caller holds.
 * Each wait has a deadline; after one has expired, no thread waits until that reader has ended. No
 * thread waits online in a qsbr domain; nor inside a section (slab/test_latent_limit.c).
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include <prudence/prudence.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "support/gp_reader.h"
#include "support/suite.h"
#include "support/stats.h"

#define LIMIT     (1 << 20)
#define WAIT_MAX  20000000ull /* ns */
#define MORE_THAN (4 * LIMIT / 512)

static struct prudence_cache *cache;

/* Pins the test to one CPU, because a thread that finds room reserved by another CPU counts a
 * wait. */
static int set_up(void **state)
{
    cpu_set_t here;

    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    if (sched_setaffinity(0, sizeof here, &here))
        return -1;
    prudence_option_set("latent_limit", "1M");
    prudence_option_set("wait_max", "20ms");
    cache = prudence_cache_create("waiting", 512, NULL);
    return cache == NULL;
}

static int tear_down(void **state)
{
    return prudence_cache_destroy(cache);
}

/* Returns the longest time of `count` pairs, because an allocation that misses is held back as
 * well. */
static unsigned long long defer_many(unsigned count)
{
    unsigned long long longest = 0;

    while (count-- > 0) {
        unsigned long long began = now_ns();

        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
        longest = now_ns() - began > longest ? now_ns() - began : longest;
    }
    return longest;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t inside;

static void *want_mutex_inside(void *unused)
{
    prudence_read_lock();
    sem_post(&inside);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    prudence_read_unlock();
    return unused;
}

TEST(deferring_with_a_lock_that_a_reader_wants_does_not_deadlock)
{
    struct prudence_stats before = stats_now(), after;
    unsigned long long longest;
    pthread_t reader;

    sem_init(&inside, 0, 0);
    pthread_mutex_lock(&mutex);
    pthread_create(&reader, NULL, want_mutex_inside, NULL);
    sem_wait(&inside);
    longest = defer_many(MORE_THAN);
    after = stats_now();
    pthread_mutex_unlock(&mutex);
    pthread_join(reader, NULL);
    assert_true(after.bytes_latent > LIMIT);
    /* One wait expired, and then throttling was off, so later deferrals did not wait. */
    assert_int_equal(after.throttle_expiries - before.throttle_expiries, 1);
    assert_int_equal(after.throttle_waits - before.throttle_waits, 1);
    assert_true(longest >= WAIT_MAX);
}

/* ... and throttling is back on when the reader has ended. */
TEST(throttling_returns_when_that_reader_has_left)
{
    struct held_reader reader = {.domain = NULL};
    struct prudence_stats before, after;

    prudence_synchronize();
    defer_many(MORE_THAN);
    assert_true(stats_now().bytes_latent <= LIMIT);
    before = stats_now();
    held_reader_start(&reader);
    defer_many(MORE_THAN);
    held_reader_end(&reader);
    after = stats_now();
    assert_int_equal(after.throttle_expiries - before.throttle_expiries, 1);
    defer_many(MORE_THAN);
    assert_true(stats_now().bytes_latent <= LIMIT);
}

TEST(deferring_while_online_in_a_qsbr_domain_never_waits)
{
    struct prudence_domain *domain = prudence_domain_create("qsbr", PRUDENCE_DOMAIN_QSBR, NULL);
    struct held_reader reader = {.domain = NULL};
    struct prudence_stats before;

    defer_many(MORE_THAN);
    held_reader_start(&reader);
    before = stats_now();
    prudence_qsbr_online(domain);
    defer_many(MORE_THAN);
    assert_int_equal(stats_now().throttle_waits, before.throttle_waits);
    prudence_qsbr_offline(domain);
    held_reader_end(&reader);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* A reader leaves in time: garbage stays under its limit, and no wait expires. */
TEST(a_short_stay_is_waited_for)
{
    struct prudence_stats before;

    prudence_option_set("wait_max", "2s");
    defer_many(MORE_THAN);
    before = stats_now();
    for (unsigned i = 0; i < 5; i++) {
        struct held_reader reader = {.domain = NULL};

        prudence_synchronize();
        /* no object is latent now, so half the limit is not too much */
        prudence_cache_shrink(cache);
        held_reader_start(&reader);
        defer_many(LIMIT / 512 / 4);
        assert_true(stats_now().bytes_latent <= LIMIT);
        held_reader_end(&reader);
        defer_many(MORE_THAN);
        assert_true(stats_now().bytes_latent <= LIMIT);
    }
    assert_int_equal(stats_now().throttle_expiries, before.throttle_expiries);
    prudence_option_set("wait_max", "20ms");
}

TEST(allocating_waits_no_longer_than_wait_max)
{
    struct held_reader reader = {.domain = NULL};
    struct prudence_stats before;
    char limit[32];
    void *object;
    size_t count = 0;

    prudence_option_set("latent_limit", "0");
    prudence_trim();
    snprintf(limit, sizeof limit, "%llu", (unsigned long long)stats_now().slab_bytes + 4 * LIMIT);
    assert_int_equal(prudence_option_set("limit", limit), 0);
    held_reader_start(&reader);
    before = stats_now();
    do {
        object = prudence_cache_alloc(cache);
        if (object)
            prudence_cache_free_deferred(cache, object);
        assert_true(++count < 1000000);
    } while (object);
    assert_int_equal(stats_now().throttle_expiries, before.throttle_expiries + 1);
    held_reader_end(&reader);
    object = prudence_cache_alloc(cache);
    assert_non_null(object);
    prudence_cache_free(cache, object);
    prudence_option_set("limit", "0");
    prudence_option_set("latent_limit", "1M");
}

SUITE_BETWEEN(set_up, tear_down)
