/* SPDX-License-Identifier: MIT */
/*
 * Bulk calls behave like as many single calls. All objects differ, and NULLs are ignored. When
 * memory runs out, the returned count shows how many objects the caller got, and errno is ENOMEM.
 *
 * ctest: inlined-too
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

static void *objects[3000];

TEST(all_objects_differ)
{
    struct prudence_cache *cache = fixed_cache(64, 32, manual_domain());

    for (unsigned count = 0; count < 3000; count = 3 * count + 1) {
        assert_int_equal(prudence_cache_alloc_bulk(cache, count, objects), count);
        assert_int_equal(stats_of(cache).objects_live, count);
        for (unsigned i = 0; i < count; i++)
            assert_false(contains(objects, i, objects[i]));
        prudence_cache_free_bulk(cache, count, objects);
        assert_int_equal(stats_of(cache).objects_live, 0);
        check_books(cache);
    }
    destroy_empty(cache);
}

TEST(nulls_are_ignored)
{
    struct prudence_cache *cache = fixed_cache(64, 32, manual_domain());
    void *some[5] = {NULL};

    some[1] = prudence_cache_alloc(cache);
    some[3] = prudence_cache_alloc(cache);
    prudence_cache_free_bulk(cache, 3, some);
    prudence_cache_free_deferred_bulk(cache, 3, some + 2);
    assert_int_equal(stats_of(cache).frees, 1);
    assert_int_equal(stats_of(cache).deferred_frees, 1);
    destroy_empty(cache);
}

TEST(deferred_ones_wait)
{
    struct prudence_cache *cache = fixed_cache(64, 32, manual_domain());
    void *others[200];

    prudence_cache_alloc_bulk(cache, 200, objects);
    prudence_cache_free_deferred_bulk(cache, 200, objects);
    assert_int_equal(stats_of(cache).objects_latent, 200);
    assert_int_equal(prudence_cache_alloc_bulk(cache, 200, others), 200);
    for (unsigned i = 0; i < 200; i++)
        assert_false(contains(objects, 200, others[i]));
    prudence_cache_free_bulk(cache, 200, others);
    destroy_empty(cache);
}

TEST(a_short_count_when_memory_runs_out)
{
    struct prudence_cache *cache = fixed_cache(64, 32, manual_domain());
    size_t got;

    allocate_all(cache, objects, 1);
    memory_fail(0, UINT32_MAX);
    errno = 0;
    got = prudence_cache_alloc_bulk(cache, 2999, objects + 1);
    memory_succeed();
    assert_int_equal(got, cache->body->capacity - 1);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(stats_of(cache).objects_live, cache->body->capacity);
    prudence_cache_free_bulk(cache, got + 1, objects);
    destroy_empty(cache);
}

SUITE(pin_thread())
