/* SPDX-License-Identifier: MIT */
/* Several clocks of a thread, and real time. */
#include "support/scm_test.h"

static uint64_t real_ns;

static uint64_t injected_time(void)
{
    return real_ns;
}

static int fresh_time(void **state)
{
    fresh(state);
    scm_real_time = injected_time;
    real_ns = 123456789;
    return 0;
}

TEST(clocks_of_a_thread_are_independent, fresh_time)
{
    struct scm_clock *a = scm_clock_create(), *b = scm_clock_create();
    void *on_a = object_new(), *on_b = object_new(), *on_both = object_new();

    assert_int_equal(scm_clock_refresh(a, on_a, 1), 0);
    assert_int_equal(scm_clock_refresh(b, on_b, 1), 0);
    assert_int_equal(scm_clock_refresh(a, on_both, 1), 0);
    assert_int_equal(scm_clock_refresh(b, on_both, 0), 0);
    ticks(20);
    global_ticks(20);
    assert_int_equal(scm_clock_tick(a), 0);
    assert_int_equal(end_count, 0);
    assert_int_equal(scm_clock_tick(a), 0);
    assert_true(has_ended(on_a));
    assert_false(has_ended(on_both));
    assert_int_equal(scm_clock_tick(b), 0);
    assert_true(has_ended(on_both));
    assert_false(has_ended(on_b));
    assert_int_equal(scm_clock_destroy(a), 0);
    assert_int_equal(scm_clock_destroy(b), 0);
    assert_true(has_ended(on_b));
}

/* As with an arena, the end of the clock ends its dates, and those of no other clock. */
TEST(dates_end_with_their_clock, fresh_time)
{
    struct scm_clock *clock = scm_clock_create();
    void *kept = object_new();

    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(scm_clock_refresh(clock, object_new(), i), 0);
    assert_int_equal(scm_clock_refresh(clock, kept, 5), 0);
    assert_int_equal(scm_refresh(kept, 0), 0);
    assert_int_equal(scm_clock_destroy(clock), 0);
    assert_int_equal(end_count, 1000);
    ticks(1);
    assert_true(has_ended(kept));
}

/* Dates expire never before `extension` ms, and within two periods after. */
TEST(real_time_expires_by_milliseconds, fresh_time)
{
    static const struct {
        unsigned period, extension;
    } cases[] = {{1, 0}, {1, 1}, {1, 100}, {10, 1}, {10, 10}, {10, 11}, {10, 999}, {100, 250}};

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (unsigned offset = 0; offset < 3; offset++) {
            struct scm_clock *clock = scm_clock_create_realtime(cases[i].period);
            void *object = object_new();
            uint64_t given;

            end_count = 0;
            real_ns += offset * cases[i].period * 333333;
            given = real_ns;
            assert_int_equal(scm_clock_refresh(clock, object, cases[i].extension), 0);
            real_ns = given + (uint64_t)cases[i].extension * 1000000;
            assert_int_equal(scm_clock_tick(clock), 0);
            assert_false(has_ended(object) && cases[i].extension);
            real_ns += 2 * (uint64_t)cases[i].period * 1000000;
            assert_int_equal(scm_clock_tick(clock), 0);
            assert_true(has_ended(object));
            assert_int_equal(scm_clock_destroy(clock), 0);
        }
    }
}

/* Any call that collects reads the time. */
TEST(ticks_and_collections_follow_real_time, fresh_time)
{
    struct scm_clock *clock = scm_clock_create_realtime(1);

    for (unsigned way = 0; way < 4; way++) {
        void *object = object_new();

        end_count = 0;
        assert_int_equal(scm_clock_refresh(clock, object, 5), 0);
        real_ns += 7000000;
        if (way == 0)
            ticks(1);
        else if (way == 1)
            global_ticks(1);
        else if (way == 2)
            assert_int_equal(scm_collect(), 0);
        else
            assert_int_equal(scm_clock_tick(clock), 0);
        assert_true(has_ended(object));
    }
    assert_int_equal(scm_clock_destroy(clock), 0);
}

static struct scm_clock *other_clock;

static void call_malloc(void *unused)
{
    scm_free(scm_malloc(16));
}

static void call_calloc(void *unused)
{
    scm_free(scm_calloc(1, 16));
}

static void call_refresh(void *object)
{
    assert_int_equal(scm_refresh(object, 20), 0);
}

static void call_global_refresh(void *object)
{
    assert_int_equal(scm_global_refresh(object, 20), 0);
}

static void call_clock_refresh(void *object)
{
    assert_int_equal(scm_clock_refresh(other_clock, object, 20), 0);
}

/* "Freed by whatever call comes": a thread that only allocates or refreshes needs no tick. */
TEST(allocations_and_refreshes_follow_real_time, fresh_time)
{
    void (*const calls[])(void *) = {call_malloc, call_calloc, call_refresh, call_global_refresh,
                                     call_clock_refresh};
    struct scm_clock *clock = scm_clock_create_realtime(1);
    void *object, *other = object_new();

    collection("lazy");
    other_clock = scm_clock_create();
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
        object = object_new();
        end_count = 0;
        assert_int_equal(scm_clock_refresh(clock, object, 5), 0);
        real_ns += 4999999;
        calls[i](other);
        assert_false(has_ended(object));
        real_ns += 2000001;
        calls[i](other);
        assert_true(has_ended(object));
        assert_int_equal(end_count, 1);
    }
    /* Needs as many calls as there are clocks, and a few for each date. */
    for (unsigned i = 0; i < 200; i++) {
        struct scm_clock *another = scm_clock_create_realtime(1 + i);

        assert_int_equal(scm_clock_refresh(another, object_new(), i), 0);
    }
    end_count = 0;
    real_ns += 1000000000;
    for (unsigned i = 0; i < 200; i++)
        call_malloc(NULL);
    assert_int_equal(end_count, 200);
    assert_int_equal(scm_clock_destroy(other_clock), 0); /* ticks would never end this clock */
}

/* The fast paths of a thread without real-time clocks have no test for them. */
TEST(without_real_time_nothing_looks, fresh_time)
{
    struct scm_clock *clock, *user = scm_clock_create();

    assert_false(something_waits(scm_self));
    assert_int_equal(scm_self->more, 0);
    clock = scm_clock_create_realtime(1);
    assert_true(something_waits(scm_self));
    assert_int_equal(scm_clock_destroy(clock), 0);
    assert_false(something_waits(scm_self));
    assert_int_equal(scm_self->more, 0);
    assert_int_equal(scm_clock_destroy(user), 0);
}

/* Time begins just before the wrap: rings grow, and clocks end, across it. */
TEST(time_wraps, fresh_time)
{
    enum { DATES = 200 };
    struct scm_clock *clock = scm_clock_create();
    void *objects[DATES];

    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(scm_clock_tick(clock), 0);
    for (unsigned i = 0; i < DATES; i++) {
        objects[i] = object_new();
        assert_int_equal(scm_clock_refresh(clock, objects[i], i), 0);
    }
    for (unsigned i = 0; i < DATES; i++) {
        assert_int_equal(end_count, i);
        assert_int_equal(scm_clock_tick(clock), 0);
        assert_true(has_ended(objects[i]));
    }
    assert_true(((struct scm_clock *)clock_of_handle(clock, &(bool){false}))->now < DATES);
    assert_int_equal(scm_clock_destroy(clock), 0);
}

/* After a pause of any length all dates have expired, and new ones count from now. */
TEST(a_long_pause_expires_all, fresh_time)
{
    struct scm_clock *clock = scm_clock_create_realtime(1);
    void *late;

    for (unsigned i = 0; i < 200; i++)
        assert_int_equal(scm_clock_refresh(clock, object_new(), i), 0);
    real_ns += UINT64_C(86400000000000);
    late = object_new();
    assert_int_equal(scm_clock_refresh(clock, late, 3), 0);
    assert_int_equal(scm_collect(), 0);
    assert_int_equal(end_count, 200);
    real_ns += 3000000;
    assert_int_equal(scm_clock_tick(clock), 0);
    assert_false(has_ended(late));
    real_ns += 2000000;
    assert_int_equal(scm_clock_tick(clock), 0);
    assert_true(has_ended(late));
    assert_int_equal(scm_clock_destroy(clock), 0);
}

static struct refreshing on_clock;

static int act_clocks(void *unused)
{
    struct scm_clock *user = scm_clock_create(), *real = scm_clock_create_realtime(1);

    return scm_clock_refresh(user, on_clock.object, 2) + scm_clock_refresh(real, object_new(), 2);
}

/* A thread that ends leaves clocks to an heir: they tick with the heir's local clock, or by
 * time, until they are empty. */
TEST(clocks_are_inherited, fresh_time)
{
    struct actor actor;
    unsigned long overhead;

    on_clock.object = object_new();
    actor_start(&actor);
    assert_int_equal(does(&actor, act_clocks, NULL), 0);
    actor_end(&actor);
    overhead = mem_info().overhead;
    assert_int_equal(scm_register_thread(), 0);
    ticks(2);
    assert_int_equal(end_count, 0);
    ticks(1);
    assert_true(has_ended(on_clock.object));
    real_ns += 10000000;
    ticks(1);
    assert_int_equal(end_count, 2);
    assert_true(mem_info().overhead < overhead);
    assert_ptr_equal(scm_self->clocks.next, &scm_self->clocks); /* all clocks have ended */
}

SUITE(scm_test_uses())
