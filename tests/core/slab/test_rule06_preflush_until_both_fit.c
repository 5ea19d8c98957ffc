/* SPDX-License-Identifier: MIT */
/*
 * Rule 6: pre-flush moves latent objects to their latent slabs, oldest first, until object cache
 * and latent cache together fit into the object cache's size, and not one object more. It hands out
 * and loses nothing.
 *
 * ctest: not-with thread (one thread)
 */
#include "slab/latent_cache.h"
#include "slab/preflush.h"
#include "support/slab_test.h"

#define ROOM 64 /* batches of 32 */

static void *objects[4 * ROOM], *others[2 * ROOM];

/* Makes a cache with `cached` objects in the object cache, and ROOM latent ones in two closed
 * batches, objects[0 .. ROOM). The first batch is safe. */
static struct prudence_cache *overfull_cache(unsigned cached)
{
    struct prudence_cache *cache = fixed_cache(64, ROOM, manual_domain());
    struct cpu_cache *cpu;
    unsigned held = 3 * ROOM;

    allocate_all(cache, objects, held);
    cpu = cpu_here(cache);
    while (stack_count(&cpu->line) < cached)
        free_all(cache, &objects[--held], 1);
    while (stack_count(&cpu->line) > cached)
        allocate_all(cache, &objects[held++], 1);
    defer_all(cache, objects, ROOM / 2);
    assert_non_null(cpu_cache_take(cache, &held));
    latent_cache_close(cache, cpu);
    cpu_cache_release(cpu);
    prudence_manual_advance(cache->domain); /* keeps the batches from becoming one */
    defer_all(cache, objects + ROOM / 2, ROOM / 2);
    assert_non_null(cpu_cache_take(cache, &held));
    latent_cache_close(cache, cpu);
    cpu_cache_release(cpu);
    assert_int_equal(latent_cache_count(cpu), ROOM);
    assert_int_equal(cpu->batch_tail - cpu->batch_head, 2);
    return cache;
}

TEST(moves_what_does_not_fit)
{
    struct prudence_cache *cache = overfull_cache(20);
    struct cpu_cache *cpu = cpu_here(cache);

    assert_int_equal(preflush_cpu(cache, os_cpu_current(), 100), 20);
    assert_int_equal(stack_count(&cpu->line) + latent_cache_count(cpu), ROOM);
    assert_ptr_equal(cpu->line.ring[cpu->line.ring_head & cpu->line.ring_mask],
                     objects[ROOM / 2 + 20]); /* the first batch was merged */
    assert_int_equal(stats_of(cache).preflushed_objects, 20);
    assert_int_equal(stats_of(cache).objects_latent, ROOM / 2);
    check_books(cache);
    assert_int_equal(preflush_cpu(cache, os_cpu_current(), 100), 0); /* it fits now */
    check_books(cache);
}

/* Pre-flush goes on with the next batch when the oldest one is used up. */
TEST(moves_more_than_one_batch)
{
    struct prudence_cache *cache = overfull_cache(50);
    struct cpu_cache *cpu = cpu_here(cache);

    assert_int_equal(preflush_cpu(cache, os_cpu_current(), 100), 50);
    assert_int_equal(stack_count(&cpu->line) + latent_cache_count(cpu), ROOM);
    check_books(cache);
}

TEST(leaves_alone_what_fits)
{
    struct prudence_cache *cache = overfull_cache(0);

    assert_int_equal(preflush_cpu(cache, os_cpu_current(), 100), 0);
    assert_int_equal(stats_of(cache).preflushed_objects, 0);
    check_books(cache);
}

TEST(nothing_is_handed_out_early)
{
    struct prudence_cache *cache = overfull_cache(50);

    preflush_cpu(cache, os_cpu_current(), 100);
    /* Only the first batch's grace period is over, so no transfer batch may mix the two. */
    allocate_all(cache, others, 2 * ROOM);
    for (unsigned i = 0; i < ROOM / 2; i++)
        assert_false(contains(others, 2 * ROOM, objects[ROOM / 2 + i]));
    prudence_manual_advance(cache->domain);
    check_books(cache);
    free_all(cache, others, 2 * ROOM);
    prudence_cache_shrink(cache);
    prudence_manual_advance(cache->domain);
    prudence_cache_shrink(cache);
    assert_int_equal(stats_of(cache).objects_latent, 0);
    check_books(cache);
}

SUITE(pin_thread())
