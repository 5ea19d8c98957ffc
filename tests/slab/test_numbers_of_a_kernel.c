/* SPDX-License-Identifier: MIT */
/*
 * The slab layer with the numbers of a kernel (tests/CMakeLists.txt): nobody ends grace periods
 * sooner, and object caches begin small. How much memory waits on CPUs then, and who misses.
 *
 * ctest: not-with thread (one thread)
 */
#include "slab/latent_cache.h"
#include "support/slab_test.h"

#define CPUS 4
#define SIZE 832 /* of a socket's inode; also of those that a CPU defers at a time */

static void *objects[OBJECTS_MAX];

/* Returns the number of objects in the object caches and rings of all CPUs. */
static unsigned held_by_cpus(struct prudence_cache *cache)
{
    unsigned held = 0;

    for (unsigned cpu = 0; cpu < CPUS; cpu++)
        held += stack_count(&cpu_cache_of(cache, cpu)->line) +
                latent_cache_count(cpu_cache_of(cache, cpu));
    return held;
}

/* Allocates two objects and defers them, as a connection does. */
static void connect_once(struct prudence_cache *cache)
{
    allocate_all(cache, objects, 2);
    defer_all(cache, objects, 2);
}

static uint64_t misses_of(struct prudence_cache *cache)
{
    struct prudence_cache_stats stats = stats_of(cache);

    return stats.allocations - stats.hits;
}

/* Each CPU in turn has eight connections. CPUs never hold more than twice the objects that are
 * deferred in a grace period, and few allocations miss. With batches of half a ring, most objects
 * waited in open batches, rings were full of them and grew, and batches with the rings. */
static void cpus_hold_little(unsigned connections)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 0, manual_domain());
    unsigned most = 0;

    for (unsigned i = 0; i < 40 * connections; i++) {
        injected_cpu = i / 8 % CPUS;
        connect_once(cache);
        if (i % connections == 0)
            prudence_manual_advance(cache->domain);
        most = (unsigned)max_size(most, held_by_cpus(cache));
    }
    print_message("%u objects deferred in a grace period: CPUs held %u, %u allocations missed\n",
                  2 * connections, most, (unsigned)misses_of(cache));
    assert_true(most <= 4 * connections);
    assert_true(misses_of(cache) <= 40);
    check_books(cache);
    destroy_empty(cache);
}

TEST(cpus_hold_twice_what_is_deferred_in_a_grace_period)
{
    inject_topology();
    cpus_hold_little(90);
    cpus_hold_little(180);
}

/* A CPU allocates and then defers as many objects as its ring does not hold. The first overflow
 * makes the cache grow, so that later ones fit. Without that, a grace period ended before the next
 * miss, which found the ring empty and saw no reason to grow. */
TEST(an_overflow_makes_the_cache_grow)
{
    struct prudence_cache *cache;

    inject_topology();
    injected_cpu = 0;
    cache = fixed_cache(SIZE, 0, manual_domain());
    for (unsigned i = 0; i < 50; i++) {
        allocate_all(cache, objects, 100);
        defer_all(cache, objects, 100);
        prudence_manual_advance(cache->domain);
    }
    print_message("%u of 5000 allocations missed, %u objects overflowed\n",
                  (unsigned)misses_of(cache), (unsigned)stats_of(cache).overflowed_objects);
    assert_true(misses_of(cache) <= 10);
    assert_true(cpu_here(cache)->size >= 100);
    check_books(cache);
    destroy_empty(cache);
}

/* Objects are built up and ended in turn, as inodes while an archive is unpacked and removed. Fewer
 * allocations miss than SLUB makes slabs of 73 objects. */
TEST(a_refill_brings_more_than_a_slab_of_slub)
{
    struct prudence_cache *cache;

    inject_topology();
    injected_cpu = 0;
    cache = fixed_cache(56, 0, manual_domain());
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 6000; i += 200) {
            allocate_all(cache, objects + i, 200);
            prudence_manual_advance(cache->domain);
        }
        for (unsigned i = 0; i < 6000; i += 200) {
            defer_all(cache, objects + i, 200);
            prudence_manual_advance(cache->domain);
        }
    }
    print_message("%u of 18000 allocations missed\n", (unsigned)misses_of(cache));
    assert_true(73 * misses_of(cache) <= 18000);
    check_books(cache);
    destroy_empty(cache);
}

/* Allocates as many objects as a refill brings, the first of which misses. Returns their number. */
static unsigned allocate_a_refill(struct prudence_cache *cache, void **to)
{
    unsigned rest;

    allocate_all(cache, to, 1);
    rest = stack_count(&cpu_here(cache)->line);
    allocate_all(cache, to + 1, rest);
    return 1 + rest;
}

/* What is latent comes back by itself, and would overflow a cache that refills had filled. The more
 * refills there were since the last merge, the longer the grace period seems to last. */
TEST(a_refill_beside_closed_batches_brings_one_and_then_twice_as_many)
{
    static const unsigned first[] = {8, 16, 32, 32}, again[] = {8, 16};
    struct prudence_cache *cache;
    unsigned count;

    inject_topology();
    injected_cpu = 1;
    cache = fixed_cache(SIZE, 0, manual_domain());
    allocate_all(cache, objects, 500);
    free_all(cache, objects, 500); /* nearly all to their slabs */
    injected_cpu = 0;
    count = allocate_a_refill(cache, objects);
    assert_int_equal(count, 64);
    defer_all(cache, objects, 16); /* two batches */
    for (unsigned i = 0; i < sizeof first / sizeof *first; i++) {
        assert_int_equal(allocate_a_refill(cache, objects + count), first[i]);
        count += first[i];
    }
    prudence_manual_advance(cache->domain);
    allocate_all(cache, objects, 16); /* merged */
    defer_all(cache, objects, 16);
    for (unsigned i = 0; i < sizeof again / sizeof *again; i++) {
        assert_int_equal(allocate_a_refill(cache, objects + count), again[i]);
        count += again[i];
    }
    free_all(cache, objects + 16, count - 16);
    prudence_manual_advance(cache->domain);
    check_books(cache);
    destroy_empty(cache);
}

SUITE(pin_thread(), prudence_option_set("wait_max", "100us"))
