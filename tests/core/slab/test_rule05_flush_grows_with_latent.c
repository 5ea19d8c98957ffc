/* SPDX-License-Identifier: MIT */
/*
 * Rule 5: an overflowing object cache flushes more objects when more are latent, because those will
 * need the room; at least one object, and no more than are there.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

static void *objects[OBJECTS_MAX];

/* Returns how many objects one free into a full object cache flushes, with `latent` objects
 * latent. */
static unsigned flushed_with_latent(size_t size, unsigned room, unsigned latent)
{
    struct prudence_cache *cache = fixed_cache(size, room, manual_domain());
    struct cpu_cache *cpu;
    unsigned next = 0;
    uint64_t before;

    allocate_all(cache, objects, 4 * room);
    cpu = cpu_here(cache);
    while (stack_count(&cpu->line) < room)
        free_all(cache, objects + next++, 1);
    defer_all(cache, objects + next, latent);
    assert_int_equal(stats_of(cache).overflowed_objects, 0);
    before = stats_of(cache).flushed_objects;
    free_all(cache, objects + 4 * room - 1, 1);
    check_books(cache);
    return (unsigned)(stats_of(cache).flushed_objects - before);
}

static void grows(size_t size, unsigned room)
{
    unsigned none = flushed_with_latent(size, room, 0);
    unsigned last = none;

    assert_true(none >= 1 && none < room);
    for (unsigned latent = room / 4; latent <= room; latent += room / 4) {
        unsigned flushed = flushed_with_latent(size, room, latent);

        assert_true(flushed >= last);
        assert_true(flushed <= room);
        last = flushed;
    }
    assert_true(last > none);
}

TEST(of_large_objects)
{
    grows(4096, 32);
}

TEST(of_a_small_object_cache)
{
    grows(64, 16);
}

TEST(of_small_objects_at_their_usual_size)
{
    grows(64, 256); /* a default batch of 64-byte objects */
}

SUITE(pin_thread())
