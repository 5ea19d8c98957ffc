/* SPDX-License-Identifier: MIT */
/*
 * Short-term memory with quarantine: expired objects rest as freed ones do; a late call is
 * reported; the end of a clock or a thread lets objects rest as well. Objects deferred at expiry
 * wait for their readers, even if the clock's end made their date expire.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/scm_test.h"
#include "support/gp_child.h"
#include "support/slab_test.h"

#include "guard/quarantine.h"

#define MANY 20

static struct prudence_cache *cache;
static void *objects[MANY];

static void new_objects(void)
{
    cache = prudence_cache_create("short-term", 64, NULL);
    assert_non_null(cache);
    allocate_all(cache, objects, MANY);
}

static struct prudence_cache_stats stats_now(void)
{
    return stats_of(cache);
}

/* Checks that allocations return none of the objects. */
static void none_is_handed_out(unsigned most)
{
    for (unsigned i = 0; i < most; i++)
        assert_false(contains(objects, MANY, prudence_cache_alloc(cache)));
}

static struct scm_clock *on_clock(void)
{
    struct scm_clock *clock = scm_clock_create();

    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(scm_clock_refresh(clock, objects[i], i % 5), 0);
    return clock;
}

/* Objects expire by a tick, or by the end of a clock. */
static void what_expires_rests(void **state)
{
    for (unsigned way = 0; way < 2; way++) {
        fresh(state);
        assert_int_equal(prudence_option_set("scm_expired", "free"), 0);
        new_objects();
        if (way == 0) {
            for (unsigned i = 0; i < MANY; i++)
                assert_int_equal(scm_refresh(objects[i], 0), 0);
            ticks(1);
        } else {
            assert_int_equal(scm_clock_destroy(on_clock()), 0);
            assert_int_equal(scm_collect(), 0);
        }
        assert_int_equal(mem_info().num_dates, 0);
        /* back to the slab, until they leave quarantine */
        assert_int_equal(stats_now().objects_live, MANY);
        none_is_handed_out(200);
        prudence_trim(); /* all leave quarantine */
        assert_int_equal(stats_now().objects_live, 200);
    }
}

static void late_calls_are_reported(void **state)
{
    fresh(state);
    new_objects();
    assert_int_equal(scm_refresh(objects[0], 0), 0);
    ticks(1);
    expect_death(scm_refresh(objects[0], 1), "scm_refresh:", "already free");
    expect_death(prudence_free(objects[0]), "prudence_free:", "already free");
}

/* A short-term object cannot be freed, so it does not come to rest before its date. */
static void a_date_keeps_from_resting(void **state)
{
    fresh(state);
    new_objects();
    assert_int_equal(scm_refresh(objects[0], 2), 0);
    expect_death(prudence_free(objects[0]), "prudence_free:", "is short-term memory");
    ticks(3);
    assert_int_equal(mem_info().num_short_term, 0);
}

/* scm_expired=deferred: a reader that entered before the clock ended keeps all objects. */
static void a_clock_that_ends_defers(void **state)
{
    struct scm_clock *clock;

    fresh(state);
    assert_int_equal(prudence_option_set("scm_expired", "deferred"), 0);
    new_objects();
    clock = on_clock();
    prudence_read_lock();
    assert_int_equal(scm_clock_tick(clock), 0); /* some by an earlier tick */
    assert_int_equal(scm_clock_destroy(clock), 0);
    assert_int_equal(scm_collect(), 0);
    assert_int_equal(mem_info().num_dates, 0);
    assert_int_equal(stats_now().deferred_frees, MANY);
    assert_int_equal(stats_now().frees, 0);
    none_is_handed_out(200);
    prudence_read_unlock();
    assert_int_equal(prudence_cache_barrier(cache), 0);
    assert_int_equal(stats_now().objects_latent, 0);
    assert_int_equal(prudence_option_set("scm_expired", "free"), 0);
}

/* The option changes between the end of the clock and the collection; its value at the
 * collection counts. */
static void a_clock_that_ended_lazily_defers(void **state)
{
    fresh(state);
    collection("lazy");
    new_objects();
    assert_int_equal(scm_clock_destroy(on_clock()), 0);
    assert_int_equal(prudence_option_set("scm_expired", "deferred"), 0);
    assert_int_equal(stats_now().frees + stats_now().deferred_frees, 0);
    assert_int_equal(scm_collect(), 0);
    assert_int_equal(stats_now().deferred_frees, MANY);
    assert_int_equal(prudence_option_set("scm_expired", "free"), 0);
}

/* Without misuse there is no report: dates end, deferred objects become safe, and all objects rest
 * and leave. */
static void good_program(void)
{
    if (scm_register_thread())
        abort();
    for (unsigned i = 0; i < 3000; i++) {
        void *object = prudence_malloc(i % 3000), *large = prudence_malloc(40000);

        scm_refresh(object, i % 3);
        scm_tick();
        prudence_free(prudence_realloc(prudence_malloc(200), 100 + i));
        prudence_free_deferred(large);
        prudence_free_deferred(prudence_malloc(64));
    }
    if (scm_unregister_thread())
        abort();
    prudence_synchronize();
    prudence_trim();
}

static void nothing_else_is_reported(void **unused)
{
    expect_survival(good_program(), "");
    assert_string_equal(last_child.output, "");
}

/* Runs programs of their own, because quarantine is an option of the start. With one byte
 * nothing rests, but all is watched. */
int main(int argc, char **argv)
{
    const struct CMUnitTest resting[] = {
        cmocka_unit_test(what_expires_rests),
        cmocka_unit_test(late_calls_are_reported),
        cmocka_unit_test(a_date_keeps_from_resting),
        cmocka_unit_test(nothing_else_is_reported),
    };
    const struct CMUnitTest deferring[] = {
        cmocka_unit_test(a_clock_that_ends_defers),
        cmocka_unit_test(a_clock_that_ended_lazily_defers),
    };
    struct child_result result;

    scm_test_uses();
    if (argc > 1)
        return cmocka_run_group_tests(resting, NULL, NULL);
    if (!getenv("PRUDENCE_OPTIONS") || !strstr(getenv("PRUDENCE_OPTIONS"), "quarantine=1")) {
        child_again("rests", "quarantine=1M", &result);
        print_message("%s", result.output);
        if (!child_exited_with(&result, 0))
            return 1;
        setenv("PRUDENCE_OPTIONS", "quarantine=1", 1);
        self_exec((char *[]){argv[0], NULL});
    }
    return cmocka_run_group_tests(deferring, NULL, NULL);
}
