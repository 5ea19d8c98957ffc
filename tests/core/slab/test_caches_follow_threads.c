/* SPDX-License-Identifier: MIT */
/*
 * A CPU that gets caches takes the place of one that threads no longer use, once as many CPUs have
 * caches as the process has threads (docs/explanation/scaling.md).
 *
 * ctest: not-with thread (one thread)
 */
#include "posix.h"
#include "slab/latent_cache.h"
#include "support/slab_test.h"

#define CPUS        4  /* that a cache may use, with fewer threads */
#define STAY_MISSES 32 /* of a thread that stays on a CPU */
#define OBJECTS     64 /* room in an object cache */

static void *objects[OBJECTS_MAX];

static int two_threads(void **state)
{
    posix_threads_injected = 2;
    return 0;
}

static bool has_caches(struct prudence_cache *cache, unsigned cpu)
{
    return cpu_cache_of(cache, cpu)->slots > 0;
}

static unsigned cpus_with_caches(struct prudence_cache *cache)
{
    unsigned count = 0;

    for (unsigned cpu = 0; cpu < os_cpu_count(); cpu++)
        count += has_caches(cache, cpu);
    return count;
}

static void work_on(struct prudence_cache *cache, unsigned cpu)
{
    injected_cpu = cpu;
    allocate_all(cache, objects, 40);
    free_all(cache, objects, 40);
}

/* Makes a cache that has caches on CPUs 1 to 4. CPU 4 took the place of CPU 0, and found the others
 * as they are. */
static struct prudence_cache *crowded_cache(void)
{
    struct prudence_cache *cache = fixed_cache(256, OBJECTS, manual_domain());

    for (unsigned cpu = 0; cpu <= CPUS; cpu++)
        work_on(cache, cpu);
    assert_int_equal(cpus_with_caches(cache), CPUS);
    assert_false(has_caches(cache, 0));
    assert_true(cache->body->crowded);
    return cache;
}

/* Makes as many misses there as a thread that stays. */
static void stay_on(struct prudence_cache *cache, unsigned cpu)
{
    injected_cpu = cpu;
    allocate_all(cache, objects, STAY_MISSES);
    assert_false(has_caches(cache, cpu));
    allocate_all(cache, objects + STAY_MISSES, 1);
    assert_true(has_caches(cache, cpu));
    free_all(cache, objects, STAY_MISSES + 1);
}

TEST(a_cpu_that_was_left_gives_its_place, two_threads)
{
    struct prudence_cache *cache = crowded_cache();

    stay_on(cache, 9);
    assert_int_equal(cpus_with_caches(cache), CPUS);
    assert_false(has_caches(cache, 1));
    assert_int_equal(stats_of(cache).remote_drains, 2);
    assert_int_equal(stats_of(cache).busy_bypasses, STAY_MISSES);
    for (unsigned cpu = 10; cpu < 60; cpu++) {
        stay_on(cache, cpu);
        assert_in_range(cpus_with_caches(cache), 1, CPUS + 1);
    }
    check_books(cache);
    destroy_empty(cache);
}

TEST(a_cpu_at_work_keeps_its_place, two_threads)
{
    struct prudence_cache *cache = crowded_cache();

    work_on(cache, 1);
    injected_cpu = 2;
    allocate_all(cache, objects + 100, 1);
    stay_on(cache, 9);
    assert_true(has_caches(cache, 1) && has_caches(cache, 2));
    assert_false(has_caches(cache, 3));
    free_all(cache, objects + 100, 1);
    check_books(cache);
    destroy_empty(cache);
}

/* A thread that only comes by leaves nothing behind. */
TEST(a_short_stay_takes_no_place, two_threads)
{
    struct prudence_cache *cache = crowded_cache();

    for (unsigned cpu = 10; cpu < 50; cpu++) {
        injected_cpu = cpu;
        allocate_all(cache, objects, 3);
        defer_all(cache, objects, 2);
        free_all(cache, objects + 2, 1);
        prudence_manual_advance(cache->domain);
        assert_false(has_caches(cache, cpu));
    }
    assert_int_equal(cpus_with_caches(cache), CPUS);
    assert_int_equal(stats_of(cache).remote_drains, 1);
    check_books(cache);
    destroy_empty(cache);
}

TEST(frees_and_deferrals_count_as_misses, two_threads)
{
    struct prudence_cache *cache = crowded_cache();

    injected_cpu = 4;
    allocate_all(cache, objects + 100, 2 * STAY_MISSES + 2);
    injected_cpu = 9;
    free_all(cache, objects + 100, STAY_MISSES);
    assert_false(has_caches(cache, 9));
    free_all(cache, objects + 100 + STAY_MISSES, 1);
    assert_true(has_caches(cache, 9));
    injected_cpu = 10;
    defer_all(cache, objects + 101 + STAY_MISSES, STAY_MISSES);
    assert_false(has_caches(cache, 10));
    defer_all(cache, objects + 101 + STAY_MISSES + STAY_MISSES, 1);
    assert_true(has_caches(cache, 10));
    check_books(cache);
    destroy_empty(cache);
}

/* What is latent on an abandoned CPU, closed or not, waits for its grace period at the node. */
TEST(latent_objects_stay_latent, two_threads)
{
    struct prudence_cache *cache = crowded_cache();
    void *more[OBJECTS_MAX];
    unsigned count;

    injected_cpu = 1;
    allocate_all(cache, objects + 200, 45);
    defer_all(cache, objects + 200, 45); /* a closed batch of 32 and an open one of 13 */
    for (unsigned cpu = 5; has_caches(cache, 1); cpu++) {
        assert_true(cpu < 10);
        stay_on(cache, cpu);
    }
    assert_int_equal(latent_cache_count(cpu_cache_of(cache, 1)), 0);
    assert_int_equal(stats_of(cache).objects_latent, 45);
    count = 4 * cache->body->capacity;
    allocate_all(cache, more, count);
    for (unsigned i = 0; i < 45; i++)
        assert_false(contains(more, count, objects[200 + i]));
    free_all(cache, more, count);
    prudence_manual_advance(cache->domain);
    check_books(cache);
    destroy_empty(cache);
}

/* A thread comes from CPU 1 to CPU 60 of another node: free objects there serve it. */
TEST(free_objects_of_the_node_that_was_left_are_used_up, two_threads)
{
    struct prudence_cache *cache = crowded_cache();
    uint64_t grows;

    stay_on(cache, 60);
    grows = stats_of(cache).grows;
    allocate_all(cache, objects, 60);
    assert_int_equal(stats_of(cache).grows, grows);
    free_all(cache, objects, 60);
    check_books(cache);
    destroy_empty(cache);
}

/* The new CPU begins with the size that demand gave to the abandoned one. */
TEST(the_size_moves_along, two_threads)
{
    struct prudence_cache *cache = fixed_cache(64, 0, manual_domain());
    unsigned size;

    injected_cpu = 0;
    for (unsigned i = 0; i < 20 && cpu_here(cache)->size < 256; i++) {
        allocate_all(cache, objects, OBJECTS_MAX);
        free_all(cache, objects, OBJECTS_MAX);
    }
    size = cpu_here(cache)->size;
    assert_true(size >= 256);
    for (unsigned cpu = 1; cpu <= CPUS; cpu++)
        work_on(cache, cpu);
    assert_false(has_caches(cache, 0));
    assert_int_equal(cpu_cache_of(cache, CPUS)->size, size);
    check_books(cache);
    destroy_empty(cache);
}

TEST(as_many_threads_as_cpus_keep_all_caches)
{
    struct prudence_cache *cache;

    posix_threads_injected = 64;
    cache = fixed_cache(256, OBJECTS, manual_domain());
    for (unsigned round = 0; round < 3; round++)
        for (unsigned cpu = 0; cpu < 64; cpu++)
            work_on(cache, cpu);
    assert_int_equal(cpus_with_caches(cache), 64);
    assert_int_equal(stats_of(cache).busy_bypasses, 0);
    destroy_empty(cache);
}

/* Threads that were started since take no place of others. */
TEST(more_threads_get_more_cpus, two_threads)
{
    struct prudence_cache *cache = crowded_cache();

    posix_threads_injected = 32;
    stay_on(cache, 9); /* counts the threads anew */
    assert_false(cache->body->crowded);
    for (unsigned cpu = 10; cpu < 30; cpu++)
        work_on(cache, cpu);
    assert_int_equal(cpus_with_caches(cache), CPUS + 1 + 20);
    check_books(cache);
    destroy_empty(cache);
}

SUITE(pin_thread(), inject_topology())
