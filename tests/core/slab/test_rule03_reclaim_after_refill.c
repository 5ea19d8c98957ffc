/* SPDX-License-Identifier: MIT */
/*
 * Rule 3: the upper bound of a refill. A grace period that ends right after a refill (the paper's
 * worst case, section 3.1) makes no object cache overflow: all latent objects are used before the
 * next refill, and nothing is flushed. Nor do as many plain frees, up to half of the object cache,
 * which is what a refill fills at least (ADR 139). The same holds when the thread moves to another
 * CPU before the refill ends.
 *
 * ctest: not-with thread (one thread)
 */
#include "slab/latent_cache.h"
#include "support/slab_test.h"

static void *objects[OBJECTS_MAX];

/* Returns the most free objects that a refill may leave in an object cache. */
static unsigned filled(unsigned room, unsigned latent)
{
    return latent < room / 2 ? room - latent : room / 2;
}

/* Makes a cache with `latent` latent objects, about to miss; objects[latent .. held) are live. */
static struct prudence_cache *cache_at_miss(unsigned room, unsigned latent, unsigned *held)
{
    struct prudence_cache *cache = fixed_cache(64, room, manual_domain());

    *held = 3 * room;
    allocate_all(cache, objects, *held);
    while (stack_count(&cpu_here(cache)->line))
        allocate_all(cache, &objects[(*held)++], 1);
    defer_all(cache, objects, latent);
    return cache;
}

static void reclaim(unsigned room, unsigned latent)
{
    unsigned held, stacked;
    struct prudence_cache *cache = cache_at_miss(room, latent, &held);
    struct cpu_cache *cpu = cpu_here(cache);
    uint64_t refills;

    allocate_all(cache, &objects[held++], 1); /* the refill */
    refills = cpu->counts.refills;
    stacked = stack_count(&cpu->line);
    assert_true(stacked < filled(room, latent));
    assert_int_equal(latent_cache_count(cpu), latent);
    prudence_manual_advance(cache->domain);
    allocate_all(cache, objects + held, stacked + latent);
    assert_int_equal(cpu->counts.refills, refills);
    assert_int_equal(cpu->counts.merged_objects, latent);
    assert_int_equal(stats_of(cache).flushes, 0);
    assert_int_equal(stats_of(cache).overflowed_objects, 0);
    check_books(cache);
    free_all(cache, objects + latent, held + stacked);
    destroy_empty(cache);
}

TEST(what_is_latent_finds_its_room)
{
    for (unsigned latent = 0; latent <= 16; latent++)
        reclaim(16, latent);
    for (unsigned latent = 0; latent <= 256; latent += 32)
        reclaim(256, latent);
}

/* Instead of a merge, as many plain frees arrive as objects are latent, as from callbacks. */
TEST(so_do_as_many_frees_up_to_half)
{
    for (unsigned latent = 1; latent <= 16; latent++) {
        unsigned held, frees = latent < 8 ? latent : 8;
        struct prudence_cache *cache = cache_at_miss(16, latent, &held);

        allocate_all(cache, &objects[held++], 1);
        free_all(cache, objects + latent, frees);
        assert_int_equal(stats_of(cache).flushes, 0);
        free_all(cache, objects + latent + frees, held - latent - frees);
        destroy_empty(cache);
    }
}

/* --------------------------------------------------------------- refills that end on another
 * CPU */

#define ROOM 64

static unsigned moves_to; /* 0: stays */

static void construct(void *object, void *context)
{
    (void)object, (void)context;
    if (moves_to)
        injected_cpu = moves_to;
    moves_to = 0;
}

static struct prudence_cache *constructed_cache(void)
{
    struct prudence_cache_attr attr = {.size = sizeof attr,
                                       .domain = manual_domain(),
                                       .constructor = construct,
                                       .object_cache_bytes = (size_t)ROOM * 64};
    struct prudence_cache *cache = prudence_cache_create("moves", 64, &attr);

    assert_non_null(cache);
    return cache;
}

/* The thread moves to another CPU while it makes a new slab. `free` objects are in the object cache
 * there, and `latent` in the latent cache. */
static void a_refill_that_ends_elsewhere(unsigned free, unsigned latent)
{
    unsigned most = filled(ROOM, latent), added = most > free ? most - free : 0;
    struct prudence_cache *cache = constructed_cache();
    struct cpu_cache *there;
    unsigned held = 3 * ROOM;

    injected_cpu = 1;
    allocate_all(cache, objects, held);
    there = cpu_here(cache);
    while (stack_count(&there->line))
        allocate_all(cache, &objects[held++], 1);
    held -= free;
    free_all(cache, objects + held, free);
    defer_all(cache, objects, latent);
    injected_cpu = 0;
    moves_to = 1;
    while (moves_to)
        allocate_all(cache, &objects[held++], 1);
    assert_int_equal(injected_cpu, 1);
    assert_int_equal(latent_cache_count(there), latent);
    assert_int_equal(stack_count(&there->line), free + (added < ROOM - 1 ? added : ROOM - 1));
    check_books(cache);
    free_all(cache, objects + latent, held - latent);
    destroy_empty(cache);
    injected_cpu = 0;
}

TEST(no_cpu_is_overfilled)
{
    for (unsigned latent = 0; latent <= ROOM; latent += ROOM / 4)
        for (unsigned free = 0; free <= ROOM; free += ROOM / 4)
            a_refill_that_ends_elsewhere(free, latent);
}

SUITE(pin_thread(), inject_topology())
