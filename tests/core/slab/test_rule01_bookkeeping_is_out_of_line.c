/* SPDX-License-Identifier: MIT */
/*
 * Rule 1: free bookkeeping is out of line, too. The allocator writes no freed object, in an object
 * cache or in a slab, and a program that overwrites freed objects does not corrupt the books.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

#define SIZE  48
#define COUNT 300

static void *objects[COUNT], *again[COUNT];

TEST(freed_objects_keep_their_bytes)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 16, manual_domain());

    allocate_all(cache, objects, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        fill_pattern(objects[i], SIZE);
    free_all(cache, objects, COUNT); /* 16 stay in the object cache, the others go to their slabs */
    assert_true(stats_of(cache).flushes > 0);
    for (unsigned i = 0; i < COUNT; i++)
        assert_true(has_pattern(objects[i], SIZE));
    destroy_empty(cache);
}

TEST(writing_to_freed_objects_corrupts_nothing)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 16, manual_domain());

    allocate_all(cache, objects, COUNT);
    free_all(cache, objects, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        memset(objects[i], 0xff, SIZE);
    allocate_all(cache, again, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_true(slab_of_cache(cache, again[i]) != NULL);
        assert_false(contains(again, i, again[i]));
    }
    free_all(cache, again, COUNT);
    destroy_empty(cache);
}

SUITE(pin_thread())
