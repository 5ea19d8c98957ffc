/* SPDX-License-Identifier: MIT */
/*
 * Rule 3: a refill takes o - d objects, the size of the object cache less the latent objects, but
 * at least half of the object cache (ADR 139), and at most TRANSFER_MAX. One of them serves the
 * allocation. If the node has fewer, they are enough: the cache does not grow for the others.
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
    for (unsigned latent = 0; latent <= 8; latent++)
        refill_with_latent(16, latent, 16 - latent);
}

/* As many objects may be latent as the object cache holds. A refill of one object would then be
 * followed by a miss for each allocation, until the grace period is over. */
TEST(refill_is_at_least_half)
{
    for (unsigned latent = 8; latent <= 16; latent++)
        refill_with_latent(16, latent, 8);
    for (unsigned latent = 0; latent <= 4; latent++)
        refill_with_latent(4, latent, latent < 2 ? 4 - latent : 2);
}

TEST(refill_is_at_most_a_transfer)
{
    refill_with_latent(128, 30, 98);
    refill_with_latent(128, 128, 64);
    refill_with_latent(256, 0, TRANSFER_MAX);
    refill_with_latent(256, 100, TRANSFER_MAX);
    refill_with_latent(256, 256, TRANSFER_MAX);
}

#define ROOM 16

/* Makes a cache about to miss with `latent` latent objects, whose node has `offered` free ones.
 * Stores the number of live objects in *held; the first `latent` are the latent ones. */
static struct prudence_cache *cache_whose_node_offers(unsigned offered, unsigned latent,
                                                      unsigned *held)
{
    struct prudence_cache *cache = fixed_cache(64, ROOM, manual_domain());
    struct slab_node *node;

    *held = ROOM;
    allocate_all(cache, objects, ROOM);
    while (stack_count(&cpu_here(cache)->line))
        allocate_all(cache, &objects[(*held)++], 1);
    node = node_here(cache);
    while (node_take(cache, node, &objects[*held], 1))
        (*held)++;
    *held -= offered;
    node_put(cache, objects + *held, offered);
    defer_all(cache, objects, latent);
    return cache;
}

static void refill_of_offered(unsigned offered, unsigned latent)
{
    unsigned held;
    struct prudence_cache *cache = cache_whose_node_offers(offered, latent, &held);
    uint64_t grows = stats_of(cache).grows;

    allocate_all(cache, &objects[held++], 1);
    assert_int_equal(stack_count(&cpu_here(cache)->line), offered - 1);
    assert_int_equal(stats_of(cache).grows, grows);
    check_books(cache);
    free_all(cache, objects + latent, held - latent);
    destroy_empty(cache);
}

TEST(refill_is_what_the_slabs_offer)
{
    for (unsigned offered = 1; offered <= ROOM / 2; offered++)
        for (unsigned latent = 0; latent <= ROOM; latent += ROOM / 2)
            refill_of_offered(offered, latent);
}

/* Without memory, each object of the node is handed out before an allocation fails. */
TEST(refill_needs_no_memory)
{
    unsigned held;
    struct prudence_cache *cache = cache_whose_node_offers(3, ROOM, &held);

    memory_fail(0, UINT32_MAX);
    allocate_all(cache, objects + held, 3);
    assert_null(prudence_cache_alloc(cache));
    memory_succeed();
    check_books(cache);
    free_all(cache, objects + ROOM, held + 3 - ROOM);
    destroy_empty(cache);
}

/* Programs often walk objects in the order of allocation, so refills keep the order of
 * addresses. */
TEST(refilled_objects_come_in_order_of_address)
{
    struct prudence_cache *cache = fixed_cache(64, 64, manual_domain());

    allocate_all(cache, objects, 128);
    for (unsigned i = 1; i < 128; i++)
        if (i % 64)
            assert_ptr_equal((char *)objects[i], (char *)objects[i - 1] + cache->body->stride);
    free_all(cache, objects, 128);
    destroy_empty(cache);
}

SUITE(pin_thread(), prudence_option_set("wait_max", "100us"))
