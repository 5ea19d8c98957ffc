/* SPDX-License-Identifier: MIT */
/*
 * No call, except those documented to, does work in proportion to the number of clocks or dates,
 * the time that has passed, or the threads that came and went. The test does not measure time, but
 * counts steps (counts.steps: lists moved or read). In the end nothing is lost.
 */
#include "slab/misuse.h"
#include "support/scm_test.h"

/* For the thread's clocks: two real-time ones, two lists each; left clocks: two lists; an
 * orphan: two; merges of real-time clocks: two, and a list of each class. */
#define STEPS_MAX 16

static uint64_t real_ns;

static uint64_t injected_time(void)
{
    return real_ns;
}

static int fresh_time(void **state)
{
    fresh(state);
    scm_real_time = injected_time;
    real_ns = UINT64_C(1000000000000);
    collection("lazy");
    return scm_register_thread();
}

static uint64_t steps_of(int (*call)(void *), void *argument)
{
    uint64_t before = scm_self->counts.steps;

    assert_int_equal(call(argument), 0);
    return scm_self->counts.steps - before;
}

static int act_destroy(void *clock)
{
    return scm_clock_destroy(clock);
}

static int act_clock_tick(void *clock)
{
    return scm_clock_tick(clock);
}

static int act_clock_refresh(void *clock)
{
    return scm_clock_refresh(clock, object_new(), 10);
}

static int act_malloc(void *unused)
{
    scm_free(scm_malloc(8));
    return 0;
}

TEST(a_tick_is_the_same_for_any_number_of_clocks, fresh_time)
{
    enum { CLOCKS = 1000 };
    static struct scm_clock *clocks[2 * CLOCKS];

    for (unsigned i = 0; i < CLOCKS; i++) {
        clocks[2 * i] = scm_clock_create();
        clocks[2 * i + 1] = scm_clock_create_realtime(1);
        for (unsigned j = 0; j < 2; j++)
            assert_int_equal(scm_clock_refresh(clocks[2 * i + j], object_new(), i % 10), 0);
    }
    assert_int_equal(steps_of(act_tick, NULL), 0);
    real_ns += 1000000000;
    for (unsigned i = 0; i < 5; i++) {
        assert_in_range(steps_of(act_tick, NULL), 1, STEPS_MAX);
        assert_in_range(steps_of(act_global_tick, NULL), 1, STEPS_MAX);
        assert_in_range(steps_of(act_malloc, NULL), 1, STEPS_MAX);
    }
    for (unsigned i = 0; i < CLOCKS; i++) /* each clock has had a turn */
        assert_int_equal(scm_tick(), 0);
    assert_int_equal(scm_collect(), 0);
    assert_int_equal(end_count, CLOCKS);
    for (unsigned i = 0; i < 2 * CLOCKS; i++)
        assert_true(steps_of(act_destroy, clocks[i]) <= STEPS_MAX);
    assert_int_equal(scm_collect(), 0);
    assert_int_equal(end_count, 2 * CLOCKS);
    assert_int_equal(mem_info().num_dates, 0);
}

/* Each list of the ring has a date; then all those dates pass. */
TEST(a_clock_that_was_away_catches_up_bit_by_bit, fresh_time)
{
    enum { DATES = 2000 };
    int (*const calls[])(void *) = {act_tick, act_clock_tick, act_malloc, act_clock_refresh};

    for (unsigned way = 0; way < sizeof calls / sizeof *calls; way++) {
        struct scm_clock *clock = scm_clock_create_realtime(1);
        unsigned count = 0;

        end_count = 0;
        for (unsigned i = 0; i < DATES; i++)
            assert_int_equal(scm_clock_refresh(clock, object_new(), i), 0);
        real_ns += UINT64_C(10000000000);
        for (; end_count < DATES; count++) {
            assert_true(steps_of(calls[way], clock) <= STEPS_MAX);
            assert_true(count < 2 * DATES);
        }
        assert_true(count >= DATES / STEPS_MAX);
        assert_int_equal(scm_clock_destroy(clock), 0);
        assert_int_equal(scm_collect(), 0);
        assert_int_equal(mem_info().num_dates, 0);
    }
}

/* Gives dates while lists whose dates have passed are still in their places. A later date with
 * the same place is not mistaken for the earlier one, and a longer ring has room for all of
 * them. */
TEST(dates_are_given_while_a_clock_catches_up, fresh_time)
{
    enum { OLD = 16, NEW = 10 };
    void *objects[NEW];

    for (unsigned longer = 0; longer < 2; longer++) {
        struct scm_clock *clock = scm_clock_create_realtime(1);

        end_count = 0;
        for (unsigned i = 0; i < OLD; i++)
            assert_int_equal(scm_clock_refresh(clock, object_new(), i), 0);
        real_ns += UINT64_C(100000000);
        for (unsigned i = 0; i < NEW; i++) {
            objects[i] = prudence_malloc(48);
            assert_int_equal(scm_set_finalizer(objects[i], witness()), 0);
            assert_int_equal(scm_clock_refresh(clock, objects[i], longer ? 500 : 15 - i), 0);
        }
        assert_int_equal(scm_collect(), 0);
        assert_int_equal(end_count, OLD);
        for (unsigned i = 0; i < NEW; i++)
            assert_false(misuse_check_live(slab_of(objects[i]), objects[i], "test"));
        real_ns += UINT64_C(502000000);
        assert_int_equal(scm_collect(), 0);
        assert_int_equal(end_count, OLD + NEW);
        assert_int_equal(scm_clock_destroy(clock), 0);
    }
}

TEST(destroying_a_clock_leaves_its_lists_to_later_calls, fresh_time)
{
    enum { DATES = 3000 };
    struct scm_clock *clock = scm_clock_create(), *other = scm_clock_create();
    uint64_t before = mem_info().overhead;
    unsigned calls = 0;

    for (unsigned i = 0; i < DATES; i++)
        assert_int_equal(scm_clock_refresh(clock, object_new(), i), 0);
    assert_true(steps_of(act_destroy, clock) <= STEPS_MAX);
    assert_int_equal(mem_info().num_expired, DATES);
    for (; end_count < DATES; calls++) { /* any call will do; no tick is needed */
        assert_true(steps_of(act_malloc, NULL) <= STEPS_MAX);
        assert_int_equal(mem_info().num_dates, DATES - end_count);
        assert_int_equal(mem_info().num_expired, DATES - end_count);
    }
    assert_int_equal(calls, DATES / TAKEN_PER_CALL);
    assert_true(mem_info().overhead < before + 20000); /* for words of slabs */
    assert_int_equal(scm_clock_destroy(other), 0);
}

/* --- threads that come and go --- */

static unsigned away; /* how far ahead the actor's clock has its dates */
static bool by_time;

static int act_clock_with_dates(void *lists)
{
    struct scm_clock *clock = by_time ? scm_clock_create_realtime(7) : scm_clock_create();
    int error = !clock;

    for (unsigned i = 0; i < *(unsigned *)lists; i++)
        error |= scm_clock_refresh(clock, object_new(), away - 20 * i);
    return error;
}

static void come_and_go(unsigned threads, unsigned lists)
{
    for (unsigned i = 0; i < threads; i++) {
        struct actor actor;

        actor_start(&actor);
        assert_int_equal(does(&actor, act_clock_with_dates, &lists), 0);
        actor_end(&actor);
    }
}

/* An ended thread costs as much as its dates: 8 bytes each, and a page for each date. */
TEST(threads_with_clocks_leave_no_rings, fresh_time)
{
    away = 4000;
    for (unsigned lists = 1; lists <= 20; lists += 19) {
        for (unsigned kind = 0; kind < 2; kind++) {
            uint64_t before;

            scm_unregister_thread();
            end_count = 0;
            by_time = kind;
            come_and_go(10, lists);
            before = mem_info().overhead;
            come_and_go(200, lists);
            assert_int_equal(mem_info().num_dates, 210 * lists);
            assert_true(mem_info().overhead < before + 400000);
            scm_register_thread();
            for (unsigned i = 0; i < 5000; i++) {
                assert_true(steps_of(act_tick, NULL) <= STEPS_MAX);
                real_ns += 10000000;
            }
            assert_int_equal(scm_collect(), 0);
            assert_int_equal(end_count, 210 * lists);
            assert_int_equal(mem_info().num_dates, 0);
            assert_int_equal(mem_info().num_short_term, 0);
        }
    }
}

/* Refreshes and ticks from a thread that takes part throughout. */
TEST(a_tick_is_the_same_for_any_number_of_orphans, fresh_time)
{
    enum { THREADS = 50, LISTS = 30 };
    static struct actor actors[THREADS];
    unsigned lists = LISTS;

    for (unsigned kind = 0; kind < 2; kind++) {
        end_count = 0;
        by_time = kind;
        for (unsigned i = 0; i < THREADS; i++) {
            actor_start(&actors[i]);
            assert_int_equal(does(&actors[i], act_clock_with_dates, &lists), 0);
        }
        for (unsigned i = 0; i < THREADS; i++)
            actor_end(&actors[i]);
        assert_int_equal(mem_info().num_dates, THREADS * LISTS);
        for (unsigned i = 0; i < 8000; i++) {
            assert_true(steps_of(act_tick, NULL) <= STEPS_MAX);
            real_ns += 1000000;
        }
        assert_int_equal(scm_collect(), 0);
        assert_int_equal(end_count, THREADS * LISTS);
        assert_ptr_equal(scm_orphans.next, &scm_orphans);
    }
}

SUITE(scm_test_uses())
