/* SPDX-License-Identifier: MIT */
/*
 * Statistics are exact whenever no operation is in progress, although fast paths count nothing.
 *
 * ctest: inlined-too
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

static void *objects[2000];

TEST(known_operations_give_known_figures)
{
    struct prudence_cache *cache = fixed_cache(100, 16, manual_domain());
    struct prudence_cache_stats stats;

    allocate_all(cache, objects, 1000);
    free_all(cache, objects, 300);
    defer_all(cache, objects + 300, 450);
    assert_int_equal(prudence_cache_alloc_bulk(cache, 77, objects), 77);
    prudence_cache_free_bulk(cache, 40, objects);
    prudence_cache_free_deferred_bulk(cache, 7, objects + 40);
    stats = stats_of(cache);
    assert_string_equal(stats.name, "test");
    assert_int_equal(stats.object_size, 100);
    assert_int_equal(stats.object_stride, 112);
    assert_int_equal(stats.slab_size, cache->body->slab_bytes);
    assert_int_equal(stats.object_cache_size, 16);
    assert_int_equal(stats.allocations, 1077);
    assert_int_equal(stats.frees, 340);
    assert_int_equal(stats.deferred_frees, 457);
    assert_int_equal(stats.objects_live, 1077 - 340 - 457);
    assert_int_equal(stats.objects_latent, 457);
    assert_int_equal(stats.bytes_latent, 457 * 112);
    assert_int_equal(stats.merged_objects, 0);
    assert_true(stats.hits < stats.allocations && stats.hits >= stats.allocations / 2);
    assert_true(stats.total_fragmentation ==
                (double)stats.slabs_now * (double)stats.slab_size / (280.0 * 100.0));
    check_books(cache);
    prudence_manual_advance(cache->domain);
    prudence_cache_shrink(cache);
    prudence_manual_advance(cache->domain);
    prudence_cache_shrink(cache);
    stats = stats_of(cache);
    assert_int_equal(stats.merged_objects, 457);
    assert_int_equal(stats.objects_latent, 0);
    assert_int_equal(stats.objects_cached, 0);
    assert_int_equal(stats.objects_live, 280);
    check_books(cache);
}

TEST(hits_are_what_the_node_did_not_serve)
{
    struct prudence_cache *cache = fixed_cache(64, 16, manual_domain());
    struct prudence_cache_stats stats;

    allocate_all(cache, objects, 17); /* miss + 15 hits, miss */
    stats = stats_of(cache);
    assert_int_equal(stats.allocations - stats.hits, 2);
    assert_int_equal(stats.refills, 2);
    assert_int_equal(stats.hits_after_merge, 0);
    free_all(cache, objects, 2); /* onto 15 others; the second one flushes half */
    stats = stats_of(cache);
    assert_int_equal(stats.flushes, 1);
    assert_int_equal(stats.flushed_objects, 8);
    assert_int_equal(stats.object_cache_churns, 1);
    assert_int_equal(stats.objects_cached, 9);
    check_books(cache);
}

TEST(slabs_peak_and_churns)
{
    struct prudence_cache *cache = fixed_cache(1024, 16, manual_domain());
    unsigned capacity = cache->body->capacity;
    struct prudence_cache_stats stats;

    allocate_all(cache, objects, 10 * capacity);
    free_all(cache, objects, 10 * capacity);
    prudence_cache_shrink(cache);
    allocate_all(cache, objects, capacity);
    stats = stats_of(cache);
    assert_int_equal(stats.slabs_peak, 10);
    assert_int_equal(stats.slabs_now, 1);
    assert_int_equal(stats.grows, 11);
    assert_int_equal(stats.shrinks, 10);
    assert_int_equal(stats.slab_churns, 10);
    check_books(cache);
}

TEST(totals_are_sums)
{
    struct prudence_stats before, after;
    struct prudence_cache *a, *b;

    assert_int_equal(prudence_stats(&before), 0);
    a = fixed_cache(64, 16, manual_domain());
    b = fixed_cache(640, 16, manual_domain());
    allocate_all(a, objects, 500);
    free_all(a, objects, 100);
    defer_all(a, objects + 100, 150);
    allocate_all(b, objects, 50);
    assert_int_equal(prudence_stats(&after), 0);
    assert_int_equal(after.caches, before.caches + 2);
    assert_int_equal(after.allocations - before.allocations, 550);
    assert_int_equal(after.frees - before.frees, 100);
    assert_int_equal(after.deferred_frees - before.deferred_frees, 150);
    assert_int_equal(after.objects_live - before.objects_live, 300);
    assert_int_equal(after.objects_latent - before.objects_latent, 150);
    assert_int_equal(after.slab_bytes - before.slab_bytes,
                     stats_of(a).slabs_now * a->body->slab_bytes +
                         stats_of(b).slabs_now * b->body->slab_bytes);
    assert_int_equal(prudence_stats(NULL), EINVAL);
    assert_int_equal(prudence_cache_stats(NULL, &(struct prudence_cache_stats){.hits = 0}), EINVAL);
    assert_int_equal(prudence_cache_stats(a, NULL), EINVAL);
}

SUITE(pin_thread())
