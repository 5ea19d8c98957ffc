/* SPDX-License-Identifier: MIT */
/*
 * What the thesis says of time and dates beyond the model of test_model_ends: its figures 3.2 and
 * 3.3, the order of ends, redundant refreshes, and calls without a thread or an object.
 */
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

/* Figure 3.2. */
TEST(figure_3_2, fresh)
{
    void *a = object_new(), *b = object_new(), *c = object_new();

    assert_int_equal(scm_refresh(b, 1), 0);
    assert_int_equal(scm_refresh(c, 0), 0);
    ticks(1);
    assert_true(has_ended(c));
    assert_false(has_ended(b));
    ticks(1);
    assert_true(has_ended(b));
    ticks(10);
    assert_false(has_ended(a));
    scm_free(a);
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

/* "Redundant refresh calls have no effect." */
TEST(redundant_refreshes_have_no_effect, fresh)
{
    void *object = object_new(), *other = object_new();

    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(scm_refresh(object, 2), 0);
    assert_int_equal(mem_info().num_dates, 1); /* repeated ones cost nothing, either */
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(scm_refresh(object, 2), 0);
        if (i % 3 == 0)
            assert_int_equal(scm_refresh(other, 2), 0);
    }
    ticks(2);
    assert_int_equal(end_count, 0);
    ticks(1);
    assert_int_equal(end_count, 2);
    assert_int_equal(mem_info().num_dates, 0);
}

/* Descriptors are removed in the order in which they were added (section 4.3.5). */
TEST(what_expires_together_ends_in_order, fresh)
{
    void *objects[500];

    for (unsigned i = 0; i < 500; i++) {
        objects[i] = object_new();
        assert_int_equal(scm_refresh(objects[i], 3), 0);
    }
    ticks(4);
    assert_int_equal(end_count, 500);
    assert_memory_equal(ended_objects, objects, sizeof objects);
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

TEST(null_is_ignored, fresh)
{
    assert_int_equal(scm_refresh(NULL, 1), 0);
    assert_int_equal(scm_global_refresh(NULL, 1), 0);
    scm_free(NULL);
    ticks(5);
}

SUITE(scm_test_uses())
