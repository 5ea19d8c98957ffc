/* SPDX-License-Identifier: MIT */
/* Objects of any origin become short-term; their cost; reallocation; scm_get_mem_info. */
#include "support/scm_test.h"

#include <prudence/stats.h>

TEST(the_names_of_the_thesis_allocate, fresh)
{
    char *object = scm_malloc(100), *zeroed = scm_calloc(10, 10);

    memset(object, 1, 100);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(zeroed[i], 0);
    object = scm_realloc(object, 5000);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(object[i], 1);
    scm_free(object);
    scm_free(zeroed);
    assert_null(scm_calloc(SIZE_MAX / 2, 3));
    assert_int_equal(errno, ENOMEM);
}

/* "Any time after the allocation of an object it can be transformed", for any size and any call
 * that allocates. */
TEST(any_object_can_become_short_term, fresh)
{
    static const size_t sizes[] = {0, 1, 16, 100, 1024, 32768, 32769, 100000, 5000000};
    struct prudence_cache *cache = prudence_cache_create("mine", 200, NULL);
    void *objects[64];
    unsigned count = 0;

    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        objects[count++] = prudence_malloc(sizes[i]);
        objects[count++] = scm_malloc(sizes[i]);
        objects[count++] = prudence_aligned_alloc(4096, sizes[i]);
        objects[count++] = prudence_calloc(1, sizes[i]);
    }
    objects[count++] = prudence_cache_alloc(cache);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(scm_set_finalizer(objects[i], witness()), 0);
        assert_int_equal(scm_refresh(objects[i], 1), 0);
    }
    ticks(1);
    assert_int_equal(prudence_cache_destroy(cache), EBUSY); /* it has a live object */
    for (unsigned i = 0; i < count; i++) {
        assert_false(has_ended(objects[i]));
        memset(objects[i], 1, prudence_usable_size(objects[i]));
    }
    ticks(1);
    assert_int_equal(end_count, count);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* In a cache with short-term objects, others are allocated, freed and deferred as usual. */
TEST(persistent_neighbours_live_as_ever, fresh)
{
    struct prudence_cache *cache = prudence_cache_create("mixed", 64, NULL);
    struct prudence_cache_stats stats;
    void *objects[2000];

    for (unsigned i = 0; i < 2000; i++)
        objects[i] = prudence_cache_alloc(cache);
    for (unsigned i = 0; i < 2000; i += 4)
        assert_int_equal(scm_refresh(objects[i], 0), 0);
    for (unsigned i = 1; i < 2000; i += 4)
        prudence_cache_free(cache, objects[i]);
    for (unsigned i = 2; i < 2000; i += 4)
        prudence_free(objects[i]);
    for (unsigned i = 3; i < 2000; i += 4)
        prudence_free_deferred(objects[i]);
    prudence_cache_stats(cache, &stats);
    assert_int_equal(stats.objects_live, 500);
    assert_int_equal(stats.frees, 1000);
    assert_int_equal(stats.deferred_frees, 500);
    ticks(1);
    prudence_cache_stats(cache, &stats);
    assert_int_equal(stats.objects_live, 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

/* A persistent object costs nothing: no byte of metadata, and no larger size class. */
TEST(persistent_objects_cost_nothing, fresh)
{
    struct scm_mem_info before = mem_info(), after;
    void *objects[1000];

    for (unsigned i = 0; i < 1000; i++)
        objects[i] = scm_malloc(64);
    after = mem_info();
    assert_int_equal(after.overhead, before.overhead);
    assert_int_equal(after.allocated - before.allocated, 64 * 1000);
    for (unsigned i = 0; i < 1000; i++)
        scm_free(objects[i]);
}

/* Overhead is a descriptor, and the counts of the slabs. It goes with the dates and the slabs. */
TEST(dates_cost_a_descriptor_each, fresh)
{
    struct prudence_cache *cache = prudence_cache_create("costs", 64, NULL);
    unsigned long before, with_dates;

    ticks(1);
    before = mem_info().overhead;
    for (unsigned i = 0; i < 12600; i++)
        assert_int_equal(scm_refresh(prudence_cache_alloc(cache), 0), 0);
    with_dates = mem_info().overhead - before;
    assert_true(with_dates >= 12600 * 8);
    assert_true(with_dates <= 12600 * (8 + 8) * 21 / 20);
    ticks(1);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    assert_int_equal(mem_info().overhead, before);
}

/* Reallocation in place keeps the dates; a moved object has none, and the old one stays until
 * its dates end. */
TEST(reallocation, fresh)
{
    char *object = object_new(), *moved, *large, *large_moved;

    memset(object, 7, 48);
    assert_int_equal(scm_refresh(object, 0), 0);
    assert_ptr_equal(scm_realloc(object, 40), object);
    moved = scm_realloc(object, 500);
    assert_ptr_not_equal(moved, object);
    for (unsigned i = 0; i < 40; i++)
        assert_int_equal(moved[i], 7);
    memset(object, 8, 48); /* the old object still exists */
    ticks(1);
    assert_true(has_ended(object));
    large = prudence_malloc(200000);
    assert_int_equal(scm_set_finalizer(large, witness()), 0);
    assert_int_equal(scm_refresh(large, 0), 0);
    large_moved = prudence_realloc(large, 10000000);
    assert_ptr_not_equal(large_moved, large);
    memset(large, 1, 200000);
    ticks(1);
    assert_true(has_ended(large));
    scm_free(moved);
    scm_free(large_moved);
}

/* "Total allocated bytes, total freed bytes, total of allocated objects, total of freed
 * objects." */
TEST(mem_info_counts_everything, fresh)
{
    struct scm_mem_info before = mem_info(), after;
    size_t large = round_up(200000, os_page_size);

    for (unsigned i = 0; i < 16; i++)
        prudence_free(prudence_malloc(200000)); /* the first ones have margins (guard_first) */
    before = mem_info();
    for (unsigned i = 0; i < 100; i++) {
        void *object = scm_malloc(500); /* from the 512-byte class */

        if (i % 2)
            scm_free(object);
        else
            assert_int_equal(scm_refresh(object, i % 4), 0);
    }
    after = mem_info();
    assert_int_equal(after.num_alloc - before.num_alloc, 100);
    assert_int_equal(after.num_freed - before.num_freed, 50);
    assert_int_equal(after.allocated - before.allocated, 100 * 512);
    assert_int_equal(after.freed - before.freed, 50 * 512);
    assert_int_equal(after.num_short_term, 50);
    assert_int_equal(after.num_dates, 50);
    ticks(1);
    assert_int_equal(mem_info().num_short_term, 25);
    ticks(2);
    after = mem_info();
    assert_int_equal(after.num_freed - before.num_freed, 100);
    assert_int_equal(after.freed - before.freed, 100 * 512);
    assert_int_equal(after.num_collected - before.num_collected, 50);
    before = after;
    assert_int_equal(scm_refresh(scm_malloc(200000), 0), 0);
    assert_int_equal(mem_info().allocated - before.allocated, large);
    ticks(1);
    assert_int_equal(mem_info().freed - before.freed, large);
}

SUITE(scm_test_uses())
