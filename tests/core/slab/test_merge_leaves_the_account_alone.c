/* SPDX-License-Identifier: MIT */
/*
 * Space of merged objects becomes the ring's reservation for the next deferrals, so that in steady
 * state a miss does not change the account of latent bytes. Above the limit, or after the
 * reservation was taken back, the space is released.
 *
 * ctest: not-with thread (one thread)
 */
#include "slab/latent_cache.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/throttle.h"
#include "support/slab_test.h"

#define ROOM 32

static struct prudence_cache *cache;
static struct cpu_cache *cpu;

static void pairs(unsigned count)
{
    while (count--)
        prudence_free_deferred(prudence_cache_alloc(cache));
}

static unsigned owned(unsigned (*act)(void))
{
    unsigned result = 0;

    assert_ptr_equal(cpu_cache_take(cache, &result), cpu);
    result = act();
    cpu_cache_release(cpu);
    return result;
}

static unsigned close_batch(void)
{
    latent_cache_close(cache, cpu);
    return 0;
}

static unsigned merge(void)
{
    return latent_cache_merge(cache, cpu);
}

static unsigned open_batch(void)
{
    return latent_cache_open(cache, cpu);
}

/* Prepares a ring without latent objects, and with a whole batch reserved. */
static int make(void **state)
{
    cache = fixed_cache(64, ROOM, manual_domain());
    cpu = cpu_here(cache);
    pairs(1);
    owned(close_batch);
    prudence_manual_advance(cache->domain);
    owned(merge);
    owned(open_batch);
    assert_int_equal(latent_cache_count(cpu), 0);
    assert_true(latent_cache_is_open(cache, cpu));
    return 0;
}

static int destroy(void **state)
{
    prudence_manual_advance(cache->domain);
    destroy_empty(cache);
    assert_int_equal(limit_used(), 0);
    return 0;
}

static uint64_t in_ring(void)
{
    return (cpu->reserved - cpu->line.ring_head) * cache->body->stride;
}

/* Defers `count` objects and makes them ready to merge. */
static void about_to_merge(unsigned count)
{
    pairs(count);
    assert_int_equal(latent_cache_count(cpu), count);
    owned(close_batch);
    prudence_manual_advance(cache->domain);
    assert_int_equal(limit_used(), in_ring());
}

TEST(is_passed_on, make, destroy)
{
    uint64_t before = limit_used();

    for (unsigned round = 0; round < 100; round++) {
        unsigned count = 1 + round % batch_of(cache, cpu);

        about_to_merge(count);
        assert_int_equal(owned(merge), count);
        assert_true(latent_cache_is_open(cache, cpu));
        assert_int_equal(limit_used(), in_ring());
        assert_int_equal(limit_used(), before); /* unchanged */
    }
}

/* Reserves more than the limit elsewhere. */
TEST(is_released_above_the_limit, make, destroy)
{
    const size_t elsewhere = (size_t)33 << 20;
    uint64_t before = limit_used();

    about_to_merge(8);
    limit_reserve_past(cpu->line.cpu, elsewhere);
    assert_int_equal(owned(merge), 8);
    limit_release(cpu->line.cpu, elsewhere);
    assert_int_equal(limit_used(), in_ring());
    assert_int_equal(limit_used(), before - 8 * cache->body->stride);
}

TEST(is_released_where_the_reservation_was_taken_back, make, destroy)
{
    about_to_merge(8);
    throttle_take_back_here();
    assert_int_equal(owned(merge), 8);
    assert_int_equal(in_ring(), 0);
    assert_int_equal(limit_used(), 0);
}

/* A ring never reserves more than a batch ahead. */
TEST(what_a_batch_does_not_need_is_released, make, destroy)
{
    unsigned batch = batch_of(cache, cpu);

    about_to_merge(batch);
    owned(open_batch);
    assert_true(latent_cache_is_open(cache, cpu));
    assert_int_equal(owned(merge), batch);
    assert_int_equal(cpu->reserved - cpu->line.ring_tail, batch);
    assert_int_equal(limit_used(), in_ring());
}

SUITE(pin_thread())
