/* SPDX-License-Identifier: MIT */
/*
 * Rule 3: a cache grows only when the node has neither free nor safe objects.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

static void *objects[OBJECTS_MAX];

TEST(a_slab_is_used_up_before_the_next)
{
    struct prudence_cache *cache = fixed_cache(64, 16, manual_domain());

    for (unsigned slab = 1; slab <= 5; slab++) {
        allocate_all(cache, objects, cache->body->capacity);
        assert_int_equal(stats_of(cache).grows, slab);
    }
    check_books(cache);
}

TEST(safe_latent_objects_come_before_growth)
{
    struct prudence_cache *cache = fixed_cache(64, 16, manual_domain());
    unsigned count = 2 * cache->body->capacity;

    allocate_all(cache, objects, count);
    defer_all(cache, objects, count);
    assert_true(stats_of(cache).overflowed_objects > 0);
    prudence_manual_advance(cache->domain); /* for all waiting objects */
    prudence_cache_shrink(cache);           /* closes batches, and moves `next` to `waiting` */
    prudence_manual_advance(cache->domain);
    allocate_all(cache, objects, 16);
    assert_int_equal(stats_of(cache).grows, 2);
    check_books(cache);
}

/* Three latent objects are not worth a grace period by themselves, but one is driven before the
 * cache grows. */
TEST(latent_objects_that_can_be_had_come_before_growth)
{
    struct prudence_cache *cache = fixed_cache(64, 0, NULL); /* in a domain without readers */

    allocate_all(cache, objects, cache->body->capacity);
    defer_all(cache, objects, 3);
    allocate_all(cache, objects, 3);
    assert_int_equal(stats_of(cache).grows, 1);
    check_books(cache);
    free_all(cache, objects, cache->body->capacity);
    destroy_empty(cache);
}

TEST(unsafe_ones_do_not_keep_it_from_growing)
{
    struct prudence_cache *cache = fixed_cache(64, 16, manual_domain());
    static void *others[OBJECTS_MAX];
    unsigned count = cache->body->capacity;

    allocate_all(cache, objects, count);
    defer_all(cache, objects, count);
    allocate_all(cache, others, count);
    assert_int_equal(stats_of(cache).grows, 2);
    for (unsigned i = 0; i < count; i++)
        assert_false(contains(others, count, objects[i]));
    check_books(cache);
}

SUITE(pin_thread())
