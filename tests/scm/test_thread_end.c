/* SPDX-License-Identifier: MIT */
/*
 * Destructors of thread-specific data that use short-term memory: in any round, before or after the library's
 * own, for the first time or not. No thread takes part when it has ended, so global time goes on, and what
 * it gave dates is inherited.
 *
 * ctest: not-with thread (ThreadSanitizer's state of a thread is gone before the thread's last destructors and handlers)
 */
#include "support/scm_test.h"

#include <limits.h>
#include <sched.h>

static pthread_key_t early_key, late_key; /* made before and after the library's own */
static int (*act)(void);
static unsigned rounds, from_round;
static int wrong;

static void in_destructor(pthread_key_t key, void *value)
{
    rounds++;
    if (rounds >= from_round)
        wrong |= act();
    if (rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(key, value);
}

static void early_destructor(void *value)
{
    in_destructor(early_key, value);
}

static void late_destructor(void *value)
{
    in_destructor(late_key, value);
}

static bool takes_part_before;

static void *ends(void *key)
{
    if (takes_part_before)
        wrong |= scm_refresh(object_new(), 0);
    pthread_setspecific(*(pthread_key_t *)key, key);
    return NULL;
}

static void run_thread(pthread_key_t *key)
{
    pthread_t thread;

    rounds = 0;
    wrong = 0;
    assert_int_equal(pthread_create(&thread, NULL, ends, key), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(rounds, PTHREAD_DESTRUCTOR_ITERATIONS);
    assert_int_equal(wrong, 0);
}

static int acts_refresh(void)
{
    return scm_refresh(object_new(), 0);
}

static int acts_global_refresh(void)
{
    return scm_global_refresh(object_new(), 0);
}

static struct scm_region *fathers_region; /* of the thread that runs the tests */

/* As early as the thread's end was noticed; before, all is as ever. */
static int acts_anything(void)
{
    struct scm_clock *clock;
    struct scm_region *region;
    int registered = scm_register_thread(), error = registered && registered != EPERM;

    clock = scm_clock_create();
    error |= registered ? clock != NULL : scm_clock_refresh(clock, object_new(), 2);
    region = scm_region_create();
    error |= registered ? region || errno != EPERM : !scm_region_alloc(region, 5000);
    error |= registered ? 0 : scm_region_refresh(region, 1);
    error |= scm_refresh(object_new(), 1) | scm_global_refresh(object_new(), 1);
    error |= scm_region_refresh(fathers_region, 1) | scm_region_global_refresh(fathers_region, 1);
    error |= scm_tick() != (registered ? EINVAL : 0);
    error |= scm_global_tick() != (registered ? EINVAL : 0);
    scm_free(scm_malloc(48));
    return error;
}

static int (*const acts[])(void) = {acts_refresh, acts_global_refresh, acts_anything};

/* What is left ends by this thread's ticks. */
static void expect_all_ends(void)
{
    scm_register_thread();
    for (unsigned i = 0; i < 200 && mem_info().num_dates; i++) {
        assert_int_equal(scm_tick(), 0);
        assert_int_equal(scm_global_tick(), 0);
    }
    assert_int_equal(mem_info().num_dates, 0);
    assert_int_equal(mem_info().num_short_term, 0);
    assert_int_equal(region_info().regions, 0);
}

/* This thread alone takes part: each of its global ticks advances global time. */
static void expect_time_goes_on(void)
{
    uint64_t before = global_time();

    global_ticks(5);
    assert_int_equal(global_time(), before + 5);
}

static void no_thread_takes_part_beyond_its_end(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof acts / sizeof *acts; i++) {
        for (unsigned late = 0; late < 2; late++) {
            for (unsigned from = 1; from < PTHREAD_DESTRUCTOR_ITERATIONS; from++) {
                act = acts[i];
                from_round = from;
                takes_part_before = i % 2 || from % 2;
                scm_register_thread();
                fathers_region = scm_region_create();
                assert_int_equal(scm_region_refresh(fathers_region, 1), 0);
                run_thread(late ? &late_key : &early_key);
                assert_int_equal(mem_info().threads, 1);
                expect_time_goes_on();
                expect_all_ends();
            }
        }
    }
}

/* The system may show a thread for a moment after it was joined. */
static void expect_threads(unsigned count)
{
    while (mem_info().threads != count)
        sched_yield();
}

/* For the first time in the last round, when no destructor of the library comes any more: the thread is found
 * to be gone. */
static void a_thread_that_ends_unnoticed_is_found(void **state)
{
    (void)state;
    takes_part_before = false;
    from_round = PTHREAD_DESTRUCTOR_ITERATIONS;
    for (unsigned late = 0; late < 2; late++) {
        act = acts_refresh;
        run_thread(late ? &late_key : &early_key);
        expect_threads(0);
        expect_all_ends();
        assert_int_equal(mem_info().threads, 1);
        scm_unregister_thread();
    }
}

static unsigned threads_in_list(void)
{
    unsigned count = 0;
    struct list *item;

    list_for_each(item, &scm_threads)
    {
        count++;
    }
    return count;
}

/* By threads that register, also where nobody reads the statistics. */
static void threads_that_end_unnoticed_do_not_pile_up(void **state)
{
    (void)state;
    takes_part_before = false;
    from_round = PTHREAD_DESTRUCTOR_ITERATIONS;
    act = acts_refresh;
    for (unsigned i = 0; i < 50; i++)
        run_thread(&late_key);
    while (threads_in_list()) {
        assert_int_equal(scm_register_thread(), 0);
        assert_int_equal(scm_unregister_thread(), 0);
    }
    expect_all_ends();
    assert_int_equal(end_count, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(no_thread_takes_part_beyond_its_end, fresh),
        cmocka_unit_test_setup(a_thread_that_ends_unnoticed_is_found, fresh),
        cmocka_unit_test_setup(threads_that_end_unnoticed_do_not_pile_up, fresh),
    };

    scm_test_uses();
    pthread_key_create(&early_key, early_destructor);
    scm_register_thread();
    scm_unregister_thread();
    pthread_key_create(&late_key, late_destructor);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
