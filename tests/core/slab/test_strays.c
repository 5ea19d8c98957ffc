/* SPDX-License-Identifier: MIT */
/*
 * Strays: objects retired on one CPU and wanted on another come back, and objects on a quiet CPU
 * are drained on demand. So memory use stays flat.
 *
 * ctest: not-with thread (one thread)
 */
#include <unistd.h>

#include "slab/latent_cache.h"
#include "slab/reclaim/drain.h"
#include "support/slab_test.h"

static void *objects[OBJECTS_MAX];

/* Retires on CPU 1 and allocates on CPU 0, with a grace period per 100 objects. */
TEST(retired_here_allocated_there_is_flat)
{
    struct prudence_cache *cache = fixed_cache(256, 64, manual_domain());
    uint64_t peak = 0;

    for (unsigned i = 0; i < 20000; i++) {
        injected_cpu = 0;
        allocate_all(cache, objects, 1);
        injected_cpu = 1;
        defer_all(cache, objects, 1);
        if (i % 100 == 0)
            prudence_manual_advance(cache->domain);
        if (i == 4000)
            peak = stats_of(cache).slabs_peak;
    }
    assert_true(stats_of(cache).slabs_peak <= peak + 1);
    assert_true(stats_of(cache).slabs_peak * cache->body->capacity < 2000);
    check_books(cache);
    destroy_empty(cache);
}

TEST(a_quiet_cpu_is_drained_before_growth)
{
    struct prudence_cache *cache = fixed_cache(256, 64, manual_domain());
    unsigned capacity = cache->body->capacity;
    void *more[64];

    injected_cpu = 5;
    allocate_all(cache, objects, 2 * capacity); /* all objects */
    free_all(cache, objects, 20);
    defer_all(cache, objects + 20, 40); /* a closed batch of 32 and an open one of 8 */
    prudence_manual_advance(cache->domain);
    injected_cpu = 6; /* CPU 5 is quiet from now on */
    cache->body->quiet_checked_at = 0;
    assert_false(drain_quiet_cpus(cache)); /* the first check only notes counters */
    cache->body->quiet_checked_at = 0;
    assert_true(drain_quiet_cpus(cache));
    assert_int_equal(stats_of(cache).remote_drains, 1);
    assert_int_equal(stack_count(&cpu_cache_of(cache, 5)->line), 0);
    allocate_all(cache, more, 52);
    assert_int_equal(stats_of(cache).grows, 2);
    prudence_manual_advance(cache->domain); /* the drain has closed the batch of 8 */
    cache->body->quiet_checked_at = 0;
    drain_quiet_cpus(cache);
    cache->body->quiet_checked_at = 0;
    drain_quiet_cpus(cache);
    assert_int_equal(latent_cache_count(cpu_cache_of(cache, 5)), 0);
    check_books(cache);
}

/* In a kernel, the work that checks may itself run on the quiet CPU forever. */
TEST(the_cpu_that_looks_is_drained_too)
{
    struct prudence_cache *cache = fixed_cache(256, 64, manual_domain());

    injected_cpu = 5;
    allocate_all(cache, objects, 20);
    defer_all(cache, objects, 20); /* an open batch */
    for (unsigned look = 0; look < 4; look++) {
        cache->body->quiet_checked_at = 0;
        drain_quiet_cpus(cache); /* notes; then closes the batch; then takes it */
        prudence_manual_advance(cache->domain);
    }
    assert_int_equal(latent_cache_count(cpu_cache_of(cache, 5)), 0);
    assert_int_equal(stats_of(cache).objects_latent, 0);
    check_books(cache);
}

TEST(demand_looks_by_itself)
{
    struct prudence_cache *cache = fixed_cache(256, 64, manual_domain());
    void *more[10];

    injected_cpu = 7;
    allocate_all(cache, objects, cache->body->capacity);
    free_all(cache, objects, 30);
    injected_cpu = 8;
    node_add_slab(node_here(cache), slab_grow(cache, 0, OS_ALLOC_DEFAULT), NULL,
                  0); /* keeps the first check from growing */
    cache->body->quiet_checked_at = 0;
    drain_quiet_cpus(cache);
    node_take_all(cache, node_here(cache), objects + 300, cache->body->capacity);
    usleep(11000); /* there is one check at most every 10 ms */
    allocate_all(cache, more, 1);
    assert_int_equal(stats_of(cache).grows, 2);
    assert_int_equal(stats_of(cache).remote_drains, 1);
    check_books(cache);
}

TEST(a_busy_cpu_is_left_alone)
{
    struct prudence_cache *cache = fixed_cache(256, 64, manual_domain());

    for (unsigned round = 0; round < 5; round++) {
        injected_cpu = 9;
        allocate_all(cache, objects, 3);
        free_all(cache, objects, 3);
        injected_cpu = 10;
        cache->body->quiet_checked_at = 0;
        assert_false(drain_quiet_cpus(cache));
    }
    assert_true(stack_count(&cpu_cache_of(cache, 9)->line) > 0);
    assert_int_equal(stats_of(cache).remote_drains, 0);
    check_books(cache);
}

SUITE(pin_thread(), inject_topology())
