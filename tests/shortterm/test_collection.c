/* SPDX-License-Identifier: MIT */
/*
 * Lazy and eager collection, chosen at run time (thesis, 4.2.2, "Runtime complexity", and 4.5).
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "support/scm_test.h"

#include <prudence/rcu.h>
#include <prudence/stats.h>

#define MANY 1000

static void *objects[MANY];

static void many_expire_at_the_next_tick(void)
{
    for (unsigned i = 0; i < MANY; i++) {
        objects[i] = object_new();
        assert_int_equal(scm_refresh(objects[i], 0), 0);
    }
}

/* "Expired objects are reclaimed immediately after the time has advanced." */
TEST(eager_frees_all_at_the_tick, fresh)
{
    many_expire_at_the_next_tick();
    ticks(1);
    assert_int_equal(end_count, MANY);
    assert_int_equal(mem_info().num_expired, 0);
}

/* "Later, when the program calls a refresh or tick operation again ... we also process ... some
 * constant number of expired descriptors." Allocating does so, too. */
TEST(lazy_frees_a_few_at_each_call, fresh)
{
    void *other = object_new();
    struct scm_clock *clock;

    collection("lazy");
    many_expire_at_the_next_tick();
    ticks(1);
    assert_int_equal(end_count, 0);
    assert_int_equal(mem_info().num_expired, MANY);
    ticks(1);
    assert_int_equal(end_count, 1 * TAKEN_PER_CALL);
    assert_int_equal(mem_info().num_expired, MANY - TAKEN_PER_CALL);
    global_ticks(1);
    assert_int_equal(end_count, 2 * TAKEN_PER_CALL);
    assert_int_equal(scm_refresh(other, 1000), 0);
    assert_int_equal(end_count, 3 * TAKEN_PER_CALL);
    assert_int_equal(scm_global_refresh(other, 1000), 0);
    assert_int_equal(end_count, 4 * TAKEN_PER_CALL);
    clock = scm_clock_create();
    assert_int_equal(scm_clock_refresh(clock, other, 1000), 0);
    assert_int_equal(end_count, 5 * TAKEN_PER_CALL);
    assert_int_equal(scm_clock_tick(clock), 0);
    assert_int_equal(end_count, 6 * TAKEN_PER_CALL);
    assert_int_equal(scm_clock_destroy(clock), 0);
    assert_int_equal(end_count, 7 * TAKEN_PER_CALL);
    scm_free(scm_malloc(48));
    assert_int_equal(end_count, 8 * TAKEN_PER_CALL);
    scm_free(scm_calloc(1, 48));
    assert_int_equal(end_count, 9 * TAKEN_PER_CALL);
    prudence_free(prudence_malloc(48)); /* does not collect */
    assert_int_equal(end_count, 9 * TAKEN_PER_CALL);
    for (unsigned i = 0; i < MANY / TAKEN_PER_CALL; i++)
        ticks(1);
    assert_int_equal(end_count, MANY);
}

/* Allocations reuse expired memory, so memory does not grow. */
TEST(lazy_memory_is_used_again, fresh)
{
    struct scm_mem_info info;

    collection("lazy");
    for (unsigned round = 0; round < 100; round++) {
        for (unsigned i = 0; i < MANY; i++) {
            assert_int_equal(scm_refresh(scm_malloc(4000), 0), 0);
            info = mem_info();
            assert_true(info.num_short_term <= MANY + 1);
        }
        ticks(1);
    }
}

/* The next eager tick frees everything that has expired lazily; then back. */
TEST(the_strategy_changes_at_run_time, fresh)
{
    collection("lazy");
    many_expire_at_the_next_tick();
    ticks(1);
    collection("eager");
    assert_int_equal(end_count, 0);
    ticks(1);
    assert_int_equal(end_count, MANY);
    collection("lazy");
    end_count = 0;
    many_expire_at_the_next_tick();
    ticks(1);
    assert_int_equal(end_count, 0);
}

TEST(collect_frees_all_that_has_expired, fresh)
{
    void *alive = object_new();

    collection("lazy");
    many_expire_at_the_next_tick();
    assert_int_equal(scm_refresh(alive, 1), 0);
    ticks(1);
    assert_int_equal(scm_collect(), 0);
    assert_int_equal(end_count, MANY);
    assert_false(has_ended(alive));
    assert_int_equal(scm_collect(), 0);
    assert_false(has_ended(alive));
}

/* A refresh after the date still saves an object that has not been processed. */
TEST(late_refreshes_may_still_save, fresh)
{
    collection("lazy");
    many_expire_at_the_next_tick();
    ticks(1);
    assert_int_equal(scm_refresh(objects[MANY - 1], 0), 0);
    assert_int_equal(scm_collect(), 0);
    assert_false(has_ended(objects[MANY - 1]));
    assert_int_equal(end_count, MANY - 1);
}

/* scm_expired=deferred: readers that still hold expired objects keep them from being reused. */
TEST(expired_objects_may_go_the_latent_way, fresh)
{
    struct prudence_cache *cache = prudence_cache_create("latent", 64, NULL);
    struct prudence_cache_stats stats;
    void *object = prudence_cache_alloc(cache);

    assert_int_equal(prudence_option_set("scm_expired", "deferred"), 0);
    assert_int_equal(scm_refresh(object, 0), 0);
    prudence_read_lock();
    ticks(1);
    prudence_cache_stats(cache, &stats);
    assert_int_equal(stats.deferred_frees, 1);
    assert_int_equal(stats.frees, 0);
    for (unsigned i = 0; i < 100; i++)
        assert_ptr_not_equal(prudence_cache_alloc(cache), object);
    prudence_read_unlock();
    assert_int_equal(prudence_option_set("scm_expired", "free"), 0);
}

SUITE(scm_test_uses())
