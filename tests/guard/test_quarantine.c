/* SPDX-License-Identifier: MIT */
/*
 * quarantine=BYTES: a freed object is not handed out again, nor is its slab given back, until that
 * many bytes were freed after it. Never more than BYTES rest, and the oldest object leaves first.
 * Pressure, shrinking, trimming and destruction release all objects.
 *
 * ctest: inlined-too
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children)
 */
#define _GNU_SOURCE
#include "guard/quarantine.h"
#include "slab/gate.h"
#include "support/fork_matrix.h"
#include "support/slab_test.h"

#define LIMIT 4096 /* 64 objects of 64 bytes */

static struct prudence_cache *cache;
static void *objects[1000];

/* Returns the number of allocations until `object` comes back, and keeps them in `objects`. */
static unsigned allocations_until(const void *object, unsigned most)
{
    unsigned count = 0;

    while (count < most) {
        objects[count] = prudence_cache_alloc(cache);
        assert_non_null(objects[count]);
        if (objects[count++] == object)
            break;
    }
    return count;
}

TEST(rests)
{
    void *first, *more[64];
    unsigned count;

    cache = fixed_cache(64, 16, manual_domain());
    first = prudence_cache_alloc(cache);
    allocate_all(cache, more, 64);
    prudence_cache_free(cache, first);
    free_all(cache, more, 63); /* 64 rest, which is the limit */
    count = allocations_until(first, 500);
    assert_int_equal(count, 500);
    free_all(cache, objects, 0);
    prudence_cache_free(cache, more[63]); /* pushes out the first one, and no other */
    assert_ptr_equal(prudence_cache_alloc(cache), first);
    prudence_cache_free(cache, first);
    free_all(cache, objects, 500);
    destroy_empty(cache);
}

TEST(is_live_to_the_books)
{
    cache = fixed_cache(64, 16, manual_domain());
    prudence_cache_free(cache, prudence_cache_alloc(cache));
    assert_int_equal(stats_of(cache).objects_live, 1);
    check_books(cache);
    prudence_cache_shrink(cache);
    assert_int_equal(stats_of(cache).objects_live, 0);
    check_books(cache);
    prudence_cache_free(cache, prudence_cache_alloc(cache));
    prudence_trim();
    assert_int_equal(stats_of(cache).objects_live, 0);
    prudence_cache_free(cache, prudence_cache_alloc(cache));
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

TEST(larger_ones_do_not_rest)
{
    struct prudence_stats stats;
    void *small;

    small = prudence_malloc(3000);
    prudence_free(small);
    prudence_free(prudence_malloc(100000));
    prudence_stats(&stats);
    assert_int_equal(stats.objects_live, 1); /* the small one, which was not pushed out */
    prudence_trim();
}

/* Under a hard limit, resting objects are released before an allocation fails. */
TEST(given_up_under_pressure)
{
    unsigned count = 0;

    prudence_trim();
    cache = fixed_cache(1024, 16, manual_domain());
    assert_int_equal(prudence_option_set("limit", "64K"), 0);
    while ((objects[count] = prudence_cache_alloc(cache)))
        count++;
    assert_true(count > 10);
    free_all(cache, objects + count - 3, 3);
    for (unsigned i = count - 3; i < count; i++) {
        objects[i] = prudence_cache_alloc(cache);
        assert_non_null(objects[i]);
    }
    assert_null(prudence_cache_alloc(cache));
    assert_int_equal(prudence_option_set("limit", "0"), 0);
    free_all(cache, objects, count);
    destroy_empty(cache);
}

TEST(without_memory_for_the_queue)
{
    void *object;

    cache = fixed_cache(64, 16, manual_domain());
    prudence_trim();
    object = prudence_cache_alloc(cache);
    memory_fail(0, UINT32_MAX);
    prudence_cache_free(cache, object); /* freed at once */
    memory_succeed();
    assert_int_equal(stats_of(cache).objects_live, 0);
    destroy_empty(cache);
}

static void double_free(const char *check)
{
    void *object;

    assert_int_equal(prudence_option_set("check", check), 0);
    cache = fixed_cache(64, 16, manual_domain());
    object = prudence_cache_alloc(cache);
    prudence_cache_free(cache, object);
    prudence_cache_free(cache, object);
}

static void write_after_free(void)
{
    char *object;

    assert_int_equal(prudence_option_set("check", "1"), 0);
    assert_int_equal(prudence_option_set("zero_on_free", "1"), 0);
    cache = fixed_cache(64, 16, manual_domain());
    object = prudence_cache_alloc(cache);
    prudence_cache_free(cache, object);
    object[9] = 1;
    prudence_trim();
}

/* First, before there are caches. */
TEST_FIRST(misuse_is_found)
{
    expect_death(double_free("0"), "is already free", "with the option check=1");
    expect_death(double_free("1"), "is already free", "freed by:");
    expect_death(write_after_free(), "write after free: byte 9 of ", "freed by:");
}

static void leave_slowly(struct slab *slab, void *object)
{
    fork_reach();
    gate_put_kept(slab, object);
}

static void *flush_slowly(void *unused)
{
    quarantine_flush_to(leave_slowly);
    return unused;
}

static int destroys_another(void *unused)
{
    (void)unused;
    prudence_synchronize(); /* notices that no handler of fork has run */
    return prudence_cache_destroy(prudence_cache_create("child's", 64, NULL)) ? 1 : 42;
}

/* The end of a cache waits for threads that release objects. */
TEST(a_child_waits_for_no_thread_of_its_parent)
{
    struct child_result result;

    cache = fixed_cache(64, 16, manual_domain());
    prudence_cache_free(cache, prudence_cache_alloc(cache));
    fork_while(flush_slowly, _Fork, destroys_another, NULL, &result);
    assert_true(child_exited_with(&result, 42));
    destroy_empty(cache);
}

static int quarantine_on(void **state)
{
    return prudence_option_set("quarantine", "4K");
}

SUITE_BETWEEN(quarantine_on, NULL, pin_thread())
