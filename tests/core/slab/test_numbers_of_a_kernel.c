/* SPDX-License-Identifier: MIT */
/*
 * The slab layer with the numbers of a kernel (tests/CMakeLists.txt): no thread ends grace periods
 * sooner, and object caches begin small. How much memory waits on CPUs then, and who misses.
 *
 * ctest: not-with thread (one thread)
 */
#include "slab/latent_cache.h"
#include "slab/reclaim/decay.h"
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
TEST(a_refill_with_closed_batches_brings_one_and_then_twice_as_many)
{
    static const unsigned first[] = {5, 10, 20, 23, 23}, again[] = {5, 10};
    struct prudence_cache *cache;
    unsigned count;

    inject_topology();
    injected_cpu = 1;
    cache = fixed_cache(SIZE, 0, manual_domain());
    allocate_all(cache, objects, 500);
    free_all(cache, objects, 500); /* nearly all to their slabs */
    injected_cpu = 0;
    count = allocate_a_refill(cache, objects);
    assert_int_equal(count, 47);
    defer_all(cache, objects, 10); /* two batches */
    for (unsigned i = 0; i < sizeof first / sizeof *first; i++) {
        assert_int_equal(allocate_a_refill(cache, objects + count), first[i]);
        count += first[i];
    }
    prudence_manual_advance(cache->domain);
    allocate_all(cache, objects, 10); /* merged */
    defer_all(cache, objects, 10);
    for (unsigned i = 0; i < sizeof again / sizeof *again; i++) {
        assert_int_equal(allocate_a_refill(cache, objects + count), again[i]);
        count += again[i];
    }
    free_all(cache, objects + 10, count - 10);
    prudence_manual_advance(cache->domain);
    check_books(cache);
    destroy_empty(cache);
}

/* SLUB's kmalloc gives a power of two of bytes. Arrays just above one would take twice as much. */
TEST(the_first_arrays_fill_the_memory_that_they_take)
{
    static const unsigned objects_of[] = {16, 56, 120, 192, 232, 768, 1104};

    inject_topology();
    for (unsigned i = 0; i < sizeof objects_of / sizeof *objects_of; i++) {
        struct prudence_cache *cache = fixed_cache(objects_of[i], 0, manual_domain());
        size_t bytes;

        prudence_cache_free(cache, prudence_cache_alloc(cache));
        bytes = cpu_cache_array_bytes(cache, cpu_here(cache)->size);
        print_message("%4u bytes: %u objects, arrays of %zu bytes\n", objects_of[i],
                      cpu_here(cache)->size, bytes);
        assert_true(10 * bytes > 8 * round_up_to_power_of_two(bytes));
        destroy_empty(cache);
    }
}

static void decay_here(void)
{
    struct decay_pass pass = {.place.cpu = 0};

    while (decay_pass(&pass, 16))
        ;
    decay_pass_end(&pass);
}

/* A burst must not keep the memory of its arrays for ever. They stay while an object is latent. */
TEST(a_cpu_at_rest_gives_its_arrays_back)
{
    struct prudence_cache *cache;

    inject_topology();
    injected_cpu = 0;
    cache = fixed_cache(SIZE, 0, manual_domain());
    allocate_all(cache, objects, 20);
    free_all(cache, objects, 10);
    defer_all(cache, objects + 10, 10);
    assert_false(decay_is_wanted_on(0));
    assert_true(decay_is_wanted_on(0));
    decay_here();
    assert_int_equal(stack_count(&cpu_here(cache)->line), 0);
    assert_int_equal(latent_cache_count(cpu_here(cache)), 10);
    assert_int_equal(cpu_here(cache)->size, 47);
    prudence_manual_advance(cache->domain);
    assert_true(decay_is_wanted_on(0));
    decay_here();
    assert_int_equal(cpu_here(cache)->slots, 0);
    decay_here(); /* nothing remains to give */
    check_books(cache);
    destroy_empty(cache);
}

/* All objects are taken, and nothing is latent, but room for more deferrals is reserved. */
TEST(empty_arrays_stay_until_nothing_moves)
{
    struct prudence_cache *cache;
    unsigned count;

    inject_topology();
    injected_cpu = 0;
    cache = fixed_cache(SIZE, 0, manual_domain());
    count = allocate_a_refill(cache, objects);
    defer_all(cache, objects, 10); /* two batches, the second of which is open */
    for (unsigned batch = 0; batch < 2; batch++) {
        prudence_manual_advance(cache->domain);
        allocate_all(cache, objects + 5 * batch, 5);
    }
    assert_int_equal(stack_count(&cpu_here(cache)->line) + latent_cache_count(cpu_here(cache)), 0);
    assert_true(cpu_here(cache)->ahead > 0);
    decay_here();
    assert_int_equal(cpu_here(cache)->size, 47);
    assert_true(decay_is_wanted_on(0));
    decay_here();
    assert_int_equal(cpu_here(cache)->slots, 0);
    allocate_all(cache, objects + count, 1);
    assert_int_equal(cpu_here(cache)->size, 47);
    free_all(cache, objects, count + 1);
    check_books(cache);
    destroy_empty(cache);
}

/* One of the calls for memory fails. If it was the one for a slab's pages, a slab of fewer pages
 * serves, but never of a part of one: the page map of a kernel would have no entry for it. */
static bool fails_at(unsigned call)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 0, manual_domain());
    bool smaller = false;
    void *object;

    memory_fail(call, 1);
    object = prudence_cache_alloc(cache);
    memory_succeed();
    if (object) {
        assert_int_equal(slab_of(object)->bytes % os_page_size, 0);
        smaller = slab_of(object)->bytes < cache->body->slab_bytes;
        prudence_cache_free(cache, object);
    }
    destroy_empty(cache);
    return smaller;
}

TEST(a_slab_has_whole_pages_of_the_system)
{
    struct prudence_cache *cache;
    unsigned smaller = 0;

    if (os_page_size == OS_PAGE_SIZE) {
        expect_again(0, "larger pages", "page_size=16K,annotate=0", "");
        return;
    }
    inject_topology();
    injected_cpu = 0;
    for (unsigned call = 1; call <= 10; call++)
        smaller += fails_at(call);
    assert_int_equal(smaller > 0, os_page_size < 32 << 10); /* bytes of a whole slab */
    cache = fixed_cache(OS_PAGE_SIZE, 0, manual_domain());
    assert_int_equal(cache->body->stride, OS_PAGE_SIZE + CACHE_LINE); /* needs no more pages */
    destroy_empty(cache);
}

SUITE(pin_thread(), prudence_option_set("wait_max", "100us"))
