/* SPDX-License-Identifier: MIT */
/*
 * Rule 4: a latent cache holds no more than the object cache's size. A deferral at the limit
 * flushes the object cache and merges, if that helps; otherwise the oldest latent objects go to
 * their latent slabs, which are pre-moved.
 *
 * ctest: inlined-too
 * ctest: not-with thread (one thread)
 */
#include "slab/latent_cache.h"
#include "support/slab_test.h"

#define ROOM 16 /* batches of 8 */

static void *objects[256];

TEST(what_does_not_fit_goes_to_the_latent_slab)
{
    struct prudence_cache *cache = fixed_cache(64, ROOM, manual_domain());
    struct slab *slab;
    unsigned overflowed;

    allocate_all(cache, objects, cache->body->capacity);
    slab = slab_of(objects[0]);
    assert_int_equal(slab->list, SLAB_FULL);
    defer_all(cache, objects, ROOM);
    assert_int_equal(latent_cache_count(cpu_here(cache)), ROOM);
    assert_int_equal(stats_of(cache).overflowed_objects, 0);
    assert_int_equal(slab->latent, 0);
    defer_all(cache, objects + ROOM, 1); /* the oldest objects make room */
    overflowed = (unsigned)stats_of(cache).overflowed_objects;
    assert_true(overflowed > 0 && overflowed <= ROOM);
    assert_int_equal(latent_cache_count(cpu_here(cache)), ROOM + 1 - overflowed);
    assert_int_equal(stats_of(cache).objects_latent, ROOM + 1);
    assert_int_equal(slab->latent, overflowed);
    for (unsigned i = 0; i < ROOM + 1; i++)
        assert_int_equal(bits_test(slab_waiting_bits(slab), slab_index(slab, objects[i])),
                         i < overflowed);
    assert_int_equal(slab->list, SLAB_PARTIAL);
    assert_int_equal(stats_of(cache).premoved_slabs, 1);
    assert_int_equal(stats_of(cache).frees, 0);
    check_books(cache);
}

TEST(at_the_limit_a_safe_batch_makes_room)
{
    struct prudence_cache *cache = fixed_cache(64, ROOM, manual_domain());
    struct prudence_cache_stats stats;
    unsigned freed = 0;

    allocate_all(cache, objects, 100);
    while (stack_count(&cpu_here(cache)->line) < ROOM) /* fills the object cache */
        free_all(cache, objects + 99 - freed++, 1);
    defer_all(cache, objects + ROOM, ROOM);
    prudence_manual_advance(cache->domain);
    defer_all(cache, objects + 2 * ROOM, 1);
    stats = stats_of(cache);
    assert_int_equal(stats.overflowed_objects, 0);
    assert_int_equal(stats.merged_objects, ROOM / 2); /* the closed batch */
    assert_true(stats.flushed_objects >= ROOM / 2);   /* makes room for that in the object cache */
    assert_int_equal(latent_cache_count(cpu_here(cache)), ROOM / 2 + 1);
    check_books(cache);
}

TEST(without_a_safe_batch_nothing_is_flushed)
{
    struct prudence_cache *cache = fixed_cache(64, ROOM, manual_domain());
    unsigned cached;
    uint64_t flushes;

    allocate_all(cache, objects, 100);
    free_all(cache, objects, 12);
    cached = (unsigned)stats_of(cache).objects_cached;
    flushes = stats_of(cache).flushes;
    defer_all(cache, objects + 12, ROOM + 5);
    assert_int_equal(stats_of(cache).objects_cached, cached);
    assert_true(stats_of(cache).overflowed_objects >= 5);
    assert_int_equal(stats_of(cache).flushes, flushes);
    check_books(cache);
}

SUITE(pin_thread())
