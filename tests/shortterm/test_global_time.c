/* SPDX-License-Identifier: MIT */
/* Several threads and global time: thesis, sections 3.2, 4.2.2 and 4.3.2. */
#include "support/scm_test.h"

static struct actor one, two, three;

static int start(void **state)
{
    fresh(state);
    actor_start(&one);
    actor_start(&two);
    actor_start(&three);
    does(&one, act_register, NULL);
    does(&two, act_register, NULL);
    return 0;
}

static int end(void **state)
{
    actor_end(&one);
    actor_end(&two);
    actor_end(&three);
    return 0;
}

static int tick_of(struct actor *actor)
{
    return does(actor, act_global_tick, NULL);
}

/* Ticks until global time has advanced; in the new phase no thread has ticked. */
static void phase(void)
{
    uint64_t before = global_time();

    for (struct actor *next = &one; global_time() == before; next = next == &one ? &two : &one)
        tick_of(next);
}

/* "Global time advances after all participating threads issued a global_tick call at least once";
 * "the last thread that calls scm_global_tick actually increments the global time." */
TEST(the_last_thread_advances_it, start, end)
{
    uint64_t before;

    phase();
    before = global_time();
    tick_of(&one);
    assert_int_equal(global_time(), before);
    tick_of(&two);
    assert_int_equal(global_time(), before + 1);
    tick_of(&two);
    assert_int_equal(global_time(), before + 1);
    tick_of(&one);
    assert_int_equal(global_time(), before + 2);
}

/* "Two subsequent calls of scm_global_tick of a single thread executing without interference have
 * the same effect as one." */
TEST(ticking_twice_is_ticking_once, start, end)
{
    void *object = object_new();
    uint64_t before;

    phase();
    before = global_time();
    assert_int_equal(global_refreshes(&one, object, 0), 0);
    for (unsigned i = 0; i < 100; i++)
        tick_of(&one);
    assert_int_equal(global_time(), before);
    assert_false(has_ended(object));
    tick_of(&two);
    assert_int_equal(global_time(), before + 1);
    phase();
    phase();
    assert_true(has_ended(object));
}

/* Three threads need three ticks. */
TEST(all_threads_are_waited_for, start, end)
{
    uint64_t before;

    does(&three, act_register, NULL);
    phase();
    before = global_time();
    tick_of(&three);
    tick_of(&one);
    assert_int_equal(global_time(), before);
    tick_of(&two);
    assert_int_equal(global_time(), before + 1);
}

/* With one thread each tick is an advance. */
TEST(alone_every_tick_advances_it, start, end)
{
    uint64_t before;

    does(&two, act_unregister, NULL);
    tick_of(&one);
    before = global_time();
    for (unsigned i = 1; i < 20; i++) {
        tick_of(&one);
        assert_int_equal(global_time(), before + i);
    }
}

/* "scm_global_refresh with extension e takes the thread-global time g and adds (g + e + 2)." The
 * thread's view of global time advances once a phase; e + 3 advances are needed. */
TEST(two_units_are_added, start, end)
{
    for (unsigned extension = 0; extension < 5; extension++) {
        void *object = object_new();

        phase();
        end_count = 0;
        assert_int_equal(global_refreshes(&one, object, extension), 0);
        for (unsigned i = 0; i < extension + 2; i++) {
            tick_of(&one);
            assert_false(has_ended(object));
            tick_of(&two);
            assert_false(has_ended(object));
        }
        tick_of(&one);
        assert_true(has_ended(object));
        tick_of(&two);
    }
}

/* "The object is guaranteed to exist until the global time is advanced to (g + e + 1)." However the
 * threads tick. */
TEST(it_exists_until_global_time_has_advanced_by_e_plus_1, start, end)
{
    srand(1);
    for (unsigned round = 0; round < 200; round++) {
        void *object = object_new();
        unsigned extension = (unsigned)rand() % 4;
        struct actor *owner = rand() % 2 ? &one : &two;
        uint64_t given = global_time();

        end_count = 0;
        assert_int_equal(global_refreshes(owner, object, extension), 0);
        while (!has_ended(object)) {
            uint64_t before = global_time();

            tick_of(rand() % 2 ? &one : &two);
            if (has_ended(object))
                assert_true(global_time() >= given + extension + 1);
            assert_true(before <= given + extension + 4);
        }
    }
}

/* "All threads have the chance to refresh a shared object within one global phase": thread 2 has
 * it until its tick, although thread 1 ticked long before. */
TEST(every_thread_has_the_chance_to_refresh, start, end)
{
    void *object = object_new();

    phase();
    assert_int_equal(global_refreshes(&one, object, 0), 0);
    for (unsigned i = 0; i < 100; i++)
        tick_of(&one);
    assert_false(has_ended(object));
    assert_int_equal(global_refreshes(&two, object, 1), 0);
    phase();
    phase();
    phase();
    assert_false(has_ended(object)); /* two's date is still to come */
    phase();
    phase();
    assert_true(has_ended(object));
}

/* Figure 3.3, with the two units of section 4.2.2 added to every date: a(2) by thread 2, b(0) and
 * c(0) by thread 1, c(1) by thread 2. */
TEST(figure_3_3, start, end)
{
    void *a = object_new(), *b = object_new(), *c = object_new();

    phase();
    global_refreshes(&two, a, 2);
    global_refreshes(&one, b, 0);
    global_refreshes(&one, c, 0);
    tick_of(&one);
    tick_of(&one);
    global_refreshes(&two, c, 1);
    tick_of(&two); /* global time 1 */
    phase();       /* 2 */
    assert_int_equal(end_count, 0);
    phase(); /* 3: both clocks have passed 0 + 2 */
    assert_true(has_ended(b));
    assert_false(has_ended(c));
    phase();
    assert_true(has_ended(c));
    assert_false(has_ended(a));
    phase();
    assert_true(has_ended(a));
}

/* "An object can have multiple expiration dates and each of them can be either locally or globally
 * evaluated. The object is expired only if all have expired." */
TEST(all_dates_of_all_clocks_must_expire, start, end)
{
    void *object = object_new(), *other = object_new();

    phase();
    refreshes(&one, object, 0);
    refreshes(&two, object, 2);
    global_refreshes(&one, object, 0);
    refreshes(&one, other, 0);
    does(&one, act_tick, NULL);
    assert_true(has_ended(other));
    phase();
    phase();
    phase();
    assert_false(has_ended(object)); /* two's local clock has not moved */
    for (unsigned i = 0; i < 3; i++) {
        assert_false(has_ended(object));
        does(&two, act_tick, NULL);
    }
    assert_true(has_ended(object));
}

/* Local time of one thread affects neither another's nor global time. */
TEST(clocks_are_independent, start, end)
{
    void *object = object_new();
    uint64_t before;

    phase();
    before = global_time();
    refreshes(&one, object, 0);
    for (unsigned i = 0; i < 10; i++)
        does(&two, act_tick, NULL);
    phase();
    assert_false(has_ended(object));
    assert_int_equal(global_time(), before + 1);
    does(&one, act_tick, NULL);
    assert_true(has_ended(object));
    assert_int_equal(global_time(), before + 1);
}

/* "The registration of a new thread is done automatically when it calls either refresh or tick":
 * here only a refresh does so. A thread that only ticks is not waited for, so it does not hold
 * up time. */
TEST(a_first_refresh_registers, start, end)
{
    uint64_t before;

    phase();
    assert_int_equal(mem_info().threads, 2);
    assert_int_equal(does(&three, act_tick, NULL), EINVAL);
    assert_int_equal(tick_of(&three), EINVAL);
    assert_int_equal(mem_info().threads, 2);
    before = global_time();
    tick_of(&one);
    tick_of(&two);
    assert_int_equal(global_time(), before + 1);
    refreshes(&three, object_new(), 0);
    assert_int_equal(mem_info().threads, 3);
    assert_int_equal(does(&three, act_tick, NULL), 0);
}

/* A new thread counts as having ticked in the phase of its registration. */
TEST(a_registered_thread_is_waited_for, start, end)
{
    uint64_t before;

    phase();
    refreshes(&three, object_new(), 0);
    phase();
    before = global_time();
    tick_of(&one);
    tick_of(&two);
    assert_int_equal(global_time(), before);
    tick_of(&three);
    assert_int_equal(global_time(), before + 1);
    does(&three, act_unregister, NULL);
    assert_int_equal(mem_info().threads, 2);
    assert_int_equal(tick_of(&three), EINVAL);
    assert_int_equal(mem_info().threads, 2);
}

/* The thread that processes the last date frees the object, not the one that allocated it. */
TEST(the_last_date_frees_it, start, end)
{
    void *object = object_new();

    phase();
    refreshes(&one, object, 0);
    refreshes(&two, object, 1);
    does(&one, act_tick, NULL);
    does(&two, act_tick, NULL);
    assert_false(has_ended(object));
    does(&two, act_tick, NULL);
    assert_true(has_ended(object));
    assert_int_equal(end_count, 1);
}

SUITE(scm_test_uses())
