/* SPDX-License-Identifier: MIT */
/*
 * Rule 2 without fast paths (no rseq, or check=1): consecutive deferrals share a batch and a cookie
 * there, too.
 *
 * ctest: inlined-too
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

#define ROOM 32 /* batches of 16 */

TEST(the_slow_path_fills_batches)
{
    struct prudence_cache *cache;
    struct cpu_cache *cpu;
    void *objects[ROOM];

    assert_int_equal(prudence_option_set("check", "1"), 0);
    cache = fixed_cache(64, ROOM, manual_domain());
    allocate_all(cache, objects, ROOM);
    cpu = cpu_here(cache);
    defer_all(cache, objects, ROOM);
    assert_true(cpu->batch_tail - cpu->batch_head <= 1);
    assert_int_equal(stats_of(cache).overflowed_objects, 0);
    destroy_empty(cache);
}

SUITE(pin_thread())
