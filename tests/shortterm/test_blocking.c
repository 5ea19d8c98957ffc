/* SPDX-License-Identifier: MIT */
/* Threads that block, resume, end, and inherit: thesis, sections 4.2.2, 4.3.6 and 4.4. */
#include "support/scm_test.h"

static struct actor one, two;

static int start(void **state)
{
    fresh(state);
    actor_start(&one);
    actor_start(&two);
    does(&one, act_register, NULL);
    does(&two, act_register, NULL);
    return 0;
}

static int end(void **state)
{
    actor_end(&one);
    actor_end(&two);
    return 0;
}

static int tick_of(struct actor *actor)
{
    return does(actor, act_global_tick, NULL);
}

static void phase(void)
{
    uint64_t before = global_time();

    for (struct actor *next = &one; global_time() == before; next = next == &one ? &two : &one)
        tick_of(next);
}

/* "The number of active threads is decremented and the global time advances without involving the
 * blocking thread." */
TEST(a_blocked_thread_is_not_waited_for, start, end)
{
    uint64_t before;

    phase();
    before = global_time();
    assert_int_equal(does(&two, act_block, NULL), 0);
    for (unsigned i = 1; i < 10; i++) {
        tick_of(&one);
        assert_int_equal(global_time(), before + i);
    }
}

/* "When a thread has not yet globally ticked in the global phase it starts blocking ... the other
 * threads can proceed": if it was the last one, its blocking ends the phase. */
TEST(blocking_ends_a_phase_that_waited_for_it, start, end)
{
    uint64_t before;

    phase();
    before = global_time();
    tick_of(&one);
    assert_int_equal(global_time(), before);
    does(&two, act_block, NULL);
    assert_int_equal(global_time(), before + 1);
}

/* "The thread-global time remains unchanged as long as the thread is blocked." */
TEST(a_blocked_threads_dates_stand_still, start, end)
{
    void *object = object_new();

    phase();
    global_refreshes(&two, object, 0);
    does(&two, act_block, NULL);
    for (unsigned i = 0; i < 50; i++)
        tick_of(&one);
    assert_false(has_ended(object));
    does(&two, act_resume, NULL);
    for (unsigned i = 0; i < 4; i++) { /* the thread has already ticked in the first phase */
        assert_false(has_ended(object));
        phase();
    }
    assert_true(has_ended(object));
}

/* "When the thread resumes, it assumes that it already has globally ticked in the current global
 * phase": one tick of the other ends the phase, and its own does not advance its view of time. */
TEST(a_thread_that_resumes_has_ticked, start, end)
{
    void *object = object_new();
    uint64_t before;

    phase();
    does(&two, act_block, NULL);
    tick_of(&one);
    does(&two, act_resume, NULL);
    global_refreshes(&two, object, 0);
    before = global_time();
    tick_of(&two); /* has no effect */
    assert_int_equal(global_time(), before);
    tick_of(&one);
    assert_int_equal(global_time(), before + 1);
    for (unsigned i = 0; i < 2; i++) {
        tick_of(&two);
        tick_of(&one);
        assert_false(has_ended(object));
    }
    tick_of(&two);
    assert_true(has_ended(object));
}

/* "The only exception is when a resuming thread is the only active thread in the system. Then it
 * has to globally tick to make global time progress." */
TEST(unless_it_is_the_only_one, start, end)
{
    uint64_t before;

    phase();
    does(&one, act_block, NULL);
    does(&two, act_block, NULL);
    before = global_time();
    does(&two, act_resume, NULL);
    assert_int_equal(global_time(), before);
    tick_of(&two);
    assert_int_equal(global_time(), before + 1);
    tick_of(&two);
    assert_int_equal(global_time(), before + 2);
}

/* No active thread remains, so time stands. */
TEST(when_all_block_time_stands, start, end)
{
    uint64_t before;

    phase();
    does(&one, act_block, NULL);
    before = global_time();
    does(&two, act_block, NULL);
    assert_int_equal(global_time(), before);
    does(&one, act_resume, NULL);
    assert_int_equal(global_time(), before);
}

/* A blocked thread may end, and an ended thread is not waited for. */
TEST(a_thread_that_ends_is_not_waited_for, start, end)
{
    uint64_t before;

    phase();
    tick_of(&one);
    before = global_time();
    actor_end(&two);
    assert_int_equal(global_time(), before + 1);
    tick_of(&one);
    assert_int_equal(global_time(), before + 2);
    actor_start(&two);
    does(&two, act_register, NULL);
    does(&two, act_block, NULL);
    actor_end(&two);
    assert_int_equal(mem_info().threads, 1);
    actor_start(&two);
}

/* "When a new thread is created it reuses one of these ... without resetting it. This way all
 * descriptors ... expire eventually when the new thread starts using tick and refresh." */
TEST(dates_of_a_thread_that_ends_are_inherited, start, end)
{
    void *local = object_new(), *global = object_new(), *expired = object_new();

    phase();
    collection("lazy");
    for (unsigned i = 0; i < 100; i++)
        refreshes(&one, i < 99 ? scm_malloc(16) : expired, 0);
    refreshes(&one, local, 5);
    global_refreshes(&one, global, 5);
    does(&one, act_tick, NULL); /* this call processes four of the hundred */
    actor_end(&one);
    assert_int_equal(end_count, 0);
    actor_start(&one);
    does(&one, act_register, NULL); /* the heir */
    collection("eager");
    does(&one, act_tick, NULL);
    assert_true(has_ended(expired));
    for (unsigned i = 0; i < 4; i++)
        does(&one, act_tick, NULL);
    assert_true(has_ended(local));
    assert_false(has_ended(global));
    for (unsigned i = 0; i < 9; i++)
        phase();
    assert_true(has_ended(global));
    assert_int_equal(mem_info().num_dates, 0);
}

/* The number of descriptor roots follows the most threads at a time, not all that ever ran. */
TEST(a_thousand_threads_leave_nothing, start, end)
{
    uint64_t overhead = 0;

    for (unsigned i = 0; i < 1000; i++) {
        actor_end(&one);
        actor_start(&one);
        refreshes(&one, scm_malloc(16), 2);
        does(&one, act_tick, NULL);
        if (i == 10)
            overhead = mem_info().overhead;
    }
    /* Slabs of another CPU may have got words since; the threads would take more than a
     * megabyte. */
    assert_true(mem_info().overhead < overhead + 100000);
    assert_true(mem_info().num_dates <= 3);
}

TEST(registering_twice_has_no_effect, start, end)
{
    uint64_t before;

    phase();
    before = global_time();
    assert_int_equal(does(&two, act_register, NULL), 0);
    tick_of(&one);
    assert_int_equal(global_time(), before);
    tick_of(&two);
    assert_int_equal(global_time(), before + 1);
    assert_int_equal(does(&two, act_unregister, NULL), 0);
    assert_int_equal(does(&two, act_unregister, NULL), 0);
    assert_int_equal(mem_info().threads, 1);
}

SUITE(scm_test_uses())
