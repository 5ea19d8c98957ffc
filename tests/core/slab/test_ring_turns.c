/* SPDX-License-Identifier: MIT */
/*
 * The latent cache is a ring whose fast path does not wrap: a batch ends where a turn of the ring
 * ends. Over many turns, with batches that do not divide the ring, each object waits in its slot.
 * An object that is deferred twice in a row is found where a turn begins, too.
 *
 * ctest: inlined-too
 * ctest: not-with thread (one thread)
 */
#include "slab/latent_cache.h"
#include "support/slab_test.h"

#define ROOM 24 /* in a ring of 32 slots, a batch of 12 ends inside a turn's last slots */

static bool waits_in_its_slot(const struct cpu_cache *cpu, uint64_t number, const void *object)
{
    return cpu->line.ring[number & cpu->line.ring_mask] == object;
}

TEST(every_object_is_in_its_slot)
{
    struct prudence_cache *cache = fixed_cache(64, ROOM, manual_domain());
    struct cpu_cache *cpu;
    void *objects[7];
    unsigned turns = 0;

    allocate_all(cache, objects, 7);
    cpu = cpu_here(cache);
    assert_int_equal(cpu->slots, 32);
    free_all(cache, objects, 7);
    for (unsigned round = 0; round < 200; round++) {
        uint64_t first = cpu->line.ring_tail;

        allocate_all(cache, objects, 7);
        defer_all(cache, objects, 7);
        assert_int_equal(cpu->line.ring_tail, first + 7);
        for (unsigned i = 0; i < 7; i++)
            assert_true(waits_in_its_slot(cpu, first + i, objects[i]));
        turns += (first & 31) > (cpu->line.ring_tail & 31);
        check_books(cache);
        prudence_manual_advance(cache->domain);
    }
    assert_true(turns > 40);
    destroy_empty(cache);
}

/* Allocations that miss open the ring's next turn before anything is deferred there. */
TEST(a_double_at_the_start_of_a_turn_is_found_at_once)
{
    struct prudence_cache *cache = fixed_cache(64, ROOM, manual_domain());
    void *objects[8], *more[4 * ROOM];
    struct cpu_cache *cpu;
    unsigned count = 0;

    for (unsigned round = 0; round < 4; round++) {
        prudence_manual_advance(cache->domain);
        allocate_all(cache, objects, 8);
        defer_all(cache, objects, 8);
    }
    cpu = cpu_here(cache);
    for (unsigned misses = 0; misses < 2; misses += !stack_count(&cpu->line)) {
        assert_true(count < sizeof more / sizeof more[0]);
        allocate_all(cache, &more[count++], 1);
    }
    assert_true(cpu->line.ring_tail == cpu->slots && latent_cache_count(cpu) > 0);
    expect_death(prudence_cache_free_deferred(cache, objects[7]), "deferred free",
                 "already deferred and not yet safe");
    free_all(cache, more, count);
    destroy_empty(cache);
}

SUITE(pin_thread())
