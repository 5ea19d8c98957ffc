/* SPDX-License-Identifier: MIT */
/*
 * Destructors of thread-specific data that use short-term memory: in any round, before or after the
 * library's own, for the first time or not. The thread takes part until the last round: until then
 * its dates are its own, and it may tick and have clocks and regions. An ended thread takes no
 * part, so global time advances, and others inherit the dates.
 *
 * ctest: not-with thread (ThreadSanitizer forgets a thread before its last destructors, handlers)
 */
#include "support/before_constructors.h"
#include "support/scm_test.h"
#include "support/threads.h"

#include <limits.h>
#include <sched.h>

static pthread_key_t early_key, late_key; /* made before and after the library's own */
static int (*act)(void);
static unsigned rounds, from_round, last_round = PTHREAD_DESTRUCTOR_ITERATIONS;
static int wrong;

static void in_destructor(pthread_key_t key, void *value)
{
    rounds++;
    if (rounds >= from_round && rounds <= last_round)
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

static struct actor other;

static int other_ticks(void *unused)
{
    return scm_register_thread() | scm_tick() | scm_global_tick();
}

static int other_leaves(void *unused)
{
    return scm_unregister_thread();
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
    rounds = 0;
    wrong = 0;
    in_thread(ends, key);
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

/* Accepts refusals once the library has noticed the thread's last round; before that, everything
 * works as usual. */
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

/* Checks that all remaining dates end by this thread's ticks. */
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

/* Only this thread takes part, so each of its global ticks advances global time. */
static void expect_time_goes_on(void)
{
    uint64_t before = global_time();

    global_ticks(5);
    assert_int_equal(global_time(), before + 5);
}

/* Waits, because the system may show a thread for a moment after the join. */
static void expect_threads(unsigned count)
{
    while (mem_info().threads != count)
        sched_yield();
}

TEST(no_thread_takes_part_beyond_its_end, fresh)
{
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
                expect_threads(1);
                expect_time_goes_on();
                expect_all_ends();
            }
        }
    }
}

static void *kept_object;
static struct scm_region *kept_region;
static struct scm_clock *kept_clock;

/* The thread's body has given dates that are two ticks away. Another thread's ticks do not
 * affect them, and global time does not advance without this thread. */
static int acts_with_what_is_its_own(void)
{
    uint64_t before = global_time();

    for (unsigned i = 0; i < 50; i++)
        does(&other, other_ticks, NULL);
    return has_ended(kept_object) || global_time() > before + 1 ||
           !scm_region_alloc(kept_region, 8) || scm_clock_tick(kept_clock) || scm_register_thread();
}

static void *gives_dates_and_ends(void *key)
{
    kept_object = object_new();
    wrong |= scm_refresh(kept_object, 2);
    kept_region = scm_region_create();
    wrong |= scm_region_refresh(kept_region, 2);
    kept_clock = scm_clock_create();
    pthread_setspecific(*(pthread_key_t *)key, key);
    return NULL;
}

/* The library's destructor is between those of the two keys, so in the last round the second
 * key's comes too late. */
TEST(dates_are_the_threads_own_until_its_last_round, fresh)
{
    pthread_key_t *const keys[] = {&early_key, &late_key};

    actor_start(&other);
    for (unsigned late = 0; late < 2; late++) {
        pthread_t thread;

        rounds = 0;
        wrong = 0;
        act = acts_with_what_is_its_own;
        from_round = 1;
        last_round = PTHREAD_DESTRUCTOR_ITERATIONS - late;
        assert_int_equal(pthread_create(&thread, NULL, gives_dates_and_ends, keys[late]), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(wrong, 0);
        expect_threads(1); /* the other thread */
    }
    last_round = PTHREAD_DESTRUCTOR_ITERATIONS;
    does(&other, other_leaves, NULL);
    actor_end(&other);
    expect_all_ends();
    assert_true(has_ended(kept_object));
}

/* The thread first takes part in a destructor: the library's own destructor is not called again,
 * or cannot know that the call is the last. The ticks of a thread that does nothing else still
 * inherit the dates. */
TEST(dates_of_late_beginners_end_by_ticks_alone, fresh)
{
    assert_int_equal(scm_register_thread(), 0);
    takes_part_before = false;
    act = acts_refresh;
    for (unsigned from = 1; from < PTHREAD_DESTRUCTOR_ITERATIONS; from++) {
        unsigned before = end_count;

        from_round = from;
        run_thread(&late_key);
        while (end_count < before + PTHREAD_DESTRUCTOR_ITERATIONS + 1 - from) {
            assert_int_equal(scm_tick(), 0);
            assert_int_equal(scm_global_tick(), 0);
            sched_yield();
        }
    }
    assert_int_equal(scm_unregister_thread(), 0);
}

/* The thread first takes part in the last round, when the library's destructor is not called any
 * more; other threads find that it is gone. */
TEST(a_thread_that_ends_unnoticed_is_found, fresh)
{
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

/* Threads that register clear them up, even if no thread reads the statistics. */
TEST(threads_that_end_unnoticed_do_not_pile_up, fresh)
{
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

/* Runs before the library's constructor makes a key. */
static void make_early_key(void)
{
    pthread_key_create(&early_key, early_destructor);
}
BEFORE_CONSTRUCTORS(make_early_key);

SUITE(scm_test_uses(), pthread_key_create(&late_key, late_destructor))
