/* SPDX-License-Identifier: MIT */
/*
 * Rule 10: object and latent caches grow to hold the objects deferred during one grace period,
 * within a budget of bytes, so that deferrals avoid the nodes' locks. Without demand they stay
 * small.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */

#include "gp/user/mode.h"
#include "gp/user/process_life.h"
#include "slab/latent_cache.h"
#include "support/slab_test.h"

static void *objects[OBJECTS_MAX];

/* Runs `rounds` grace periods with `pairs` allocate/defer pairs each. */
static void update(struct prudence_cache *cache, unsigned rounds, unsigned pairs)
{
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < pairs; i++)
            prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
        prudence_manual_advance(cache->domain);
    }
}

TEST(they_grow_to_the_demand)
{
    struct prudence_cache *cache = fixed_cache(64, 0, manual_domain());
    uint64_t overflowed;

    update(cache, 10, 1500);
    overflowed = stats_of(cache).overflowed_objects;
    update(cache, 10, 1500);
    assert_true(stats_of(cache).object_cache_size >= 1500);
    assert_int_equal(stats_of(cache).overflowed_objects, overflowed);
    assert_true(stats_of(cache).object_cache_size * 64 <= 1 << 20);
    destroy_empty(cache);
}

TEST(they_stay_within_the_budget)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .object_cache_bytes = 64 << 10};
    struct prudence_cache *cache;

    attr.domain = manual_domain();
    cache = prudence_cache_create("budget", 64, &attr);
    update(cache, 10, 5000);
    assert_int_equal(stats_of(cache).object_cache_size, 1024);
    assert_true(latent_cache_count(cpu_here(cache)) <= 1024);
    assert_true(stats_of(cache).overflowed_objects > 0);
    destroy_empty(cache);
}

TEST(they_stay_small_without_demand)
{
    struct prudence_cache *cache = fixed_cache(64, 0, manual_domain());

    update(cache, 100, 50);
    assert_true(stats_of(cache).object_cache_size <= 2 * cache->body->batch);
    destroy_empty(cache);
}

/* A cache with much use soon grows to fit a batch; with many caches in use, later ones get less. */
TEST(they_begin_small)
{
    enum { MANY = 100 };
    struct prudence_cache *caches[MANY];
    struct prudence_domain *domain = manual_domain();
    unsigned grown = 0;

    for (unsigned i = 0; i < MANY; i++) {
        caches[i] = fixed_cache(200, 0, domain);
        allocate_all(caches[i], objects, 1);
        assert_int_equal(stats_of(caches[i]).object_cache_size, OS_CACHE_OBJECTS_MIN);
        allocate_all(caches[i], objects + 1, 999);
        grown += stats_of(caches[i]).object_cache_size >= 2 * caches[i]->body->batch;
        assert_true(stats_of(caches[i]).object_cache_size <= 2 * caches[i]->body->batch);
        free_all(caches[i], objects, 1000);
        assert_true(i > 0 || grown == 1);
    }
    assert_in_range(grown, 10, MANY / 2);
    for (unsigned i = 0; i < MANY; i++)
        destroy_empty(caches[i]);
    caches[0] = fixed_cache(200, 0, domain); /* there is room again */
    allocate_all(caches[0], objects, 1000);
    assert_true(stats_of(caches[0]).object_cache_size >= 2 * caches[0]->body->batch);
    free_all(caches[0], objects, 1000);
    destroy_empty(caches[0]);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* Bursts of allocations and frees that a small object cache would flush and refill each time. */
TEST(they_grow_with_churn)
{
    struct prudence_cache *cache = fixed_cache(64, 0, manual_domain());
    uint64_t churns;

    for (unsigned i = 0; i < 100; i++) {
        allocate_all(cache, objects, 2000);
        free_all(cache, objects, 2000);
    }
    churns = stats_of(cache).object_cache_churns;
    for (unsigned i = 0; i < 100; i++) {
        allocate_all(cache, objects, 2000);
        free_all(cache, objects, 2000);
    }
    assert_int_equal(stats_of(cache).object_cache_churns, churns);
    assert_true(stats_of(cache).object_cache_size <= cache->body->size_max);
    destroy_empty(cache);
}

static void read_in(enum reader_mode mode)
{
    store_relaxed(&gp_reader_mode, mode);
    gp_follow_options();
}

/* Bursts of deferrals, with grace periods so cheap that the cache never waits for one. */
TEST(they_grow_with_churn_of_deferrals)
{
    struct prudence_cache *cache = fixed_cache(512, 0, NULL);
    uint64_t churns;

    read_in(READER_MODE_FENCED);
    for (unsigned i = 0; i < 100; i++) {
        allocate_all(cache, objects, 2000);
        defer_all(cache, objects, 2000);
    }
    churns = stats_of(cache).object_cache_churns;
    for (unsigned i = 0; i < 100; i++) {
        allocate_all(cache, objects, 2000);
        defer_all(cache, objects, 2000);
    }
    assert_int_equal(stats_of(cache).object_cache_churns, churns);
    assert_true(stats_of(cache).object_cache_size <= cache->body->size_max);
    destroy_empty(cache);
    read_in(READER_MODE_AUTO);
}

TEST(sizes_follow_known_heuristics)
{
    for (size_t size = 1; size <= 32768; size += size < 600 ? 1 : 97) {
        struct prudence_cache *cache = fixed_cache(size, 0, NULL);
        size_t wasted = cache->body->slab_bytes - cache->body->capacity * cache->body->stride;

        assert_true(cache->body->capacity >= 8);
        assert_true(cache->body->slab_bytes % os_page_size == 0 &&
                    is_power_of_two(cache->body->slab_bytes));
        assert_true(wasted <= cache->body->slab_bytes / 6);
        assert_true(cache->body->batch >= 2 && cache->body->batch <= 256);
        assert_true(cache->body->size_min ==
                    min_size(2 * cache->body->batch, OS_CACHE_OBJECTS_MIN));
        assert_true(cache->body->size_min <= cache->body->size_max);
        assert_true(cache->body->size_max < 1 << STACK_COUNT_BITS);
        assert_true(cache->body->free_limit >= (os_page_size > OS_PAGE_SIZE ? 1 : 5));
        assert_true(cache->body->free_limit <= 10);
        assert_int_equal(prudence_cache_destroy(cache), 0);
    }
}

SUITE(pin_thread())
