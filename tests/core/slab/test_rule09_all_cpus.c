/* SPDX-License-Identifier: MIT */
/*
 * Rule 9: batches of all CPUs are closed, merged and shrunk, even those of CPUs that do nothing any
 * more. An allocation may then use another node's objects.
 *
 * ctest: not-with thread (one thread)
 */
#include "slab/latent_cache.h"
#include "support/slab_test.h"

#define COUNT 640

static void *objects[COUNT + 1];

TEST(open_batches_of_all_cpus)
{
    struct prudence_cache *cache = fixed_cache(512, 32, NULL); /* batches of 16 stay open */
    unsigned count, live;

    allocate_all(cache, objects, 5 * cache->body->capacity); /* all objects of the slabs */
    assert_int_equal(stats_of(cache).objects_cached, 0);
    count = 5 * cache->body->capacity / 63 * 63;
    for (unsigned i = 0; i < count; i++) {
        injected_cpu = i % 63; /* equally many on each of 63 CPUs */
        prudence_cache_free_deferred(cache, objects[i]);
    }
    for (unsigned cpu = 0; cpu < 63; cpu++)
        assert_int_equal(latent_cache_count(cpu_cache_of(cache, cpu)), count / 63);
    injected_cpu = 63; /* node 3; the slabs are on node 0 */
    memory_fail(0, UINT32_MAX);
    objects[0] = prudence_cache_alloc(cache);
    assert_non_null(objects[0]);
    memory_succeed();
    assert_true(stats_of(cache).pressure_waits > 0);
    for (unsigned cpu = 0; cpu < 63; cpu++)
        assert_int_equal(latent_cache_count(cpu_cache_of(cache, cpu)), 0);
    check_books(cache);
    live = 5 * cache->body->capacity - count;
    free_all(cache, objects, 1);
    free_all(cache, objects + count, live);
    destroy_empty(cache);
}

SUITE(pin_thread(), inject_topology())
