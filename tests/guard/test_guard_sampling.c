/* SPDX-License-Identifier: MIT */
/*
 * guard=N guards one allocation in N, in every thread, whatever the period of the program. The
 * CPU's caches serve the others as usual.
 */
#include <pthread.h>

#include "guard/guard.h"
#include "support/slab_test.h"

#define INTERVAL 100
#define ROUNDS   100000

/* Allocates with a period of 10, in which each allocation gets its share. */
static void *sample(void *counts)
{
    unsigned *guarded = counts;

    for (unsigned i = 0; i < ROUNDS; i++) {
        void *object = prudence_malloc(32);

        guarded[i % 10] += guard_has(object);
        prudence_free(object);
    }
    return NULL;
}

static void expect_share(const unsigned *guarded)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < 10; i++) {
        sum += guarded[i];
        if (guarded[i] < 50 || guarded[i] > 200) /* 100 are expected, give or take 6 */
            fail_msg("allocation %u of the period was guarded %u times", i, guarded[i]);
    }
    if (sum < 850 || sum > 1150)
        fail_msg("%u of %u were guarded", sum, ROUNDS);
}

TEST(one_in_so_many)
{
    unsigned guarded[10] = {0};

    sample(guarded);
    expect_share(guarded);
}

TEST(in_every_thread)
{
    unsigned guarded[2][10] = {{0}};
    pthread_t threads[2];

    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, sample, guarded[i]), 0);
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        expect_share(guarded[i]);
    }
}

TEST(the_others_are_hits)
{
    struct prudence_cache *cache = fixed_cache(64, 16, manual_domain());
    struct prudence_cache_stats stats;

    for (unsigned i = 0; i < ROUNDS; i++)
        prudence_cache_free(cache, prudence_cache_alloc(cache));
    stats = stats_of(cache);
    assert_int_equal(stats.allocations, ROUNDS);
    assert_int_equal(stats.frees, ROUNDS);
    assert_true(stats.hits > ROUNDS * 98 / 100 - 200);
    assert_true(stats.hits < ROUNDS);
    check_books(cache);
    destroy_empty(cache);
}

static int guard_on(void **state)
{
    return prudence_option_set("guard", "100");
}

SUITE_BETWEEN(guard_on, NULL)
