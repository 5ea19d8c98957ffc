/* SPDX-License-Identifier: MIT */
/*
 * No thread waits for the owner of a CPU's caches. A thread that finds the caches owned goes to the
 * node or the latent slab instead, and counts a bypass.
 *
 * ctest: inlined-too
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

TEST(every_operation_goes_to_the_node)
{
    struct prudence_cache *cache = fixed_cache(64, 16, manual_domain());
    struct prudence_cache_stats before, after;
    void *objects[20], *owner = NULL, *more;
    struct cpu_cache *cpu;
    struct slab *slab;

    allocate_all(cache, objects, 20);
    before = stats_of(cache);
    cpu = cpu_cache_take(cache, &owner);
    assert_ptr_equal(cpu, cpu_here(cache));
    more = prudence_cache_alloc(cache);
    assert_non_null(more);
    prudence_cache_free(cache, objects[0]);
    prudence_cache_free_deferred(cache, objects[1]);
    cpu_cache_release(cpu);
    after = stats_of(cache);
    assert_int_equal(after.objects_cached, before.objects_cached);
    assert_int_equal(after.allocations, before.allocations + 1);
    assert_int_equal(after.hits, before.hits);
    assert_int_equal(after.frees, before.frees + 1);
    assert_int_equal(after.deferred_frees, before.deferred_frees + 1);
    slab = slab_of(objects[0]);
    assert_true(bits_test(slab_free_bits(slab), slab_index(slab, objects[0])));
    assert_true(bits_test(slab_waiting_bits(slab), slab_index(slab, objects[1])));
    assert_int_equal(after.busy_bypasses, 3);
    check_books(cache);
    free_all(cache, &more, 1);
    free_all(cache, objects + 2, 18);
    destroy_empty(cache);
}

SUITE(pin_thread())
