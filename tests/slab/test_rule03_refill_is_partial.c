/* SPDX-License-Identifier: MIT */
/*
 * Rule 3: a refill takes max(1, o - d) objects, the size of the object cache less the latent
 * objects, and at most TRANSFER_MAX. One of them serves the allocation.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

static void *objects[OBJECTS_MAX];

static void refill_with_latent(unsigned room, unsigned latent, unsigned expected)
{
    struct prudence_cache *cache = fixed_cache(64, room, manual_domain());
    struct cpu_cache *cpu;
    uint64_t refills;
    void *object;

    allocate_all(cache, objects, 3 * room);
    cpu = cpu_here(cache);
    while (stack_count(&cpu->line)) /* until the next miss */
        allocate_all(cache, objects + 3 * room, 1);
    defer_all(cache, objects, latent);
    refills = stats_of(cache).refills;
    object = prudence_cache_alloc(cache);
    assert_non_null(object);
    assert_int_equal(stack_count(&cpu->line), expected - 1);
    assert_true(stats_of(cache).refills <= refills + 1);
    check_books(cache);
}

TEST(refill_is_size_less_latent)
{
    for (unsigned latent = 0; latent <= 16; latent++)
        refill_with_latent(16, latent, latent < 16 ? 16 - latent : 1);
}

TEST(refill_is_at_most_a_transfer)
{
    refill_with_latent(256, 0, TRANSFER_MAX);
    refill_with_latent(256, 100, TRANSFER_MAX);
    refill_with_latent(256, 200, 56);
    refill_with_latent(256, 256, 1);
}

/* Programs often walk objects in the order of allocation, so refills keep the order of
 * addresses. */
TEST(refilled_objects_come_in_order_of_address)
{
    struct prudence_cache *cache = fixed_cache(64, 64, manual_domain());

    allocate_all(cache, objects, 128);
    for (unsigned i = 1; i < 128; i++)
        if (i % 64)
            assert_ptr_equal((char *)objects[i], (char *)objects[i - 1] + cache->stride);
    free_all(cache, objects, 128);
    destroy_empty(cache);
}

SUITE(pin_thread())
