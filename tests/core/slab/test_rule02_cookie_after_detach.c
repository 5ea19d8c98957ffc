/* SPDX-License-Identifier: MIT */
/*
 * Rule 2: the cookie is taken when the batch is closed, not when the batch is opened. A grace
 * period that ended while the batch was open covers none of its objects, not even the first.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

TEST(grace_periods_before_closing_do_not_count)
{
    struct prudence_cache *cache = fixed_cache(64, 32, manual_domain());
    void *objects[32], *others[40];

    allocate_all(cache, objects, 32);
    for (unsigned i = 0; i < 8; i++) {
        prudence_cache_free_deferred(cache, objects[i]);
        prudence_manual_advance(cache->domain); /* ends before the batch is closed */
    }
    allocate_all(cache, others, 40); /* misses close the batch, and find nothing safe */
    for (unsigned i = 0; i < 8; i++)
        assert_false(contains(others, 40, objects[i]));
    assert_int_equal(stats_of(cache).merges, 0);
    free_all(cache, others, 40);
    free_all(cache, objects + 8, 24);
    destroy_empty(cache);
}

/* The batch is safe after one grace period. The numbers of objects and slabs bound the test. */
TEST(one_grace_period_after_closing_is_enough)
{
    struct prudence_cache *cache = fixed_cache(64, 32, manual_domain());
    void *objects[32], *others[64];
    unsigned reused = 0;

    allocate_all(cache, objects, 32);
    defer_all(cache, objects, 8);
    others[0] = prudence_cache_alloc(cache); /* closes */
    prudence_manual_advance(cache->domain);
    allocate_all(cache, others + 1, 63);
    for (unsigned i = 0; i < 8; i++)
        reused += contains(others, 64, objects[i]);
    assert_int_equal(reused, 8);
    free_all(cache, others, 64);
    free_all(cache, objects + 8, 24);
    destroy_empty(cache);
}

SUITE(pin_thread())
