/* SPDX-License-Identifier: MIT */
/*
 * A program's handle of a clock is valid until the clock is destroyed or the thread ends, and
 * refused ever after, whatever was made in that place. A refused call changes nothing: an object
 * without dates stays persistent.
 */
#include "support/scm_test.h"
#include "support/threads.h"

static struct scm_clock *handle;

static void expect_refused(struct scm_clock *clock, int error)
{
    void *object = object_new();
    struct scm_mem_info before = mem_info(), after;

    assert_int_equal(scm_clock_refresh(clock, object, 3), error);
    assert_int_equal(scm_clock_tick(clock), error);
    assert_int_equal(scm_clock_destroy(clock), error);
    after = mem_info();
    assert_int_equal(after.num_dates, before.num_dates);
    assert_int_equal(after.num_short_term, before.num_short_term);
    assert_int_equal(after.num_expired, before.num_expired);
    scm_free(object); /* the object is not short-term */
}

TEST(a_destroyed_clock_is_refused, fresh)
{
    struct scm_clock *clock = scm_clock_create(), *real = scm_clock_create_realtime(5);

    assert_int_equal(scm_clock_destroy(clock), 0);
    expect_refused(clock, EPERM);
    assert_int_equal(scm_clock_destroy(real), 0);
    expect_refused(real, EPERM);
}

/* Handles stay refused while another clock uses the memory. */
TEST(it_is_refused_for_ever, fresh)
{
    enum { CLOCKS = 40 };
    struct scm_clock *old[CLOCKS], *now[CLOCKS];

    for (unsigned i = 0; i < CLOCKS; i++)
        old[i] = scm_clock_create();
    for (unsigned i = 0; i < CLOCKS; i++) {
        assert_int_equal(scm_clock_refresh(old[i], object_new(), i), 0);
        assert_int_equal(scm_clock_destroy(old[i]), 0);
    }
    assert_int_equal(end_count, CLOCKS);
    for (unsigned i = 0; i < CLOCKS; i++)
        now[i] = i % 2 ? scm_clock_create() : scm_clock_create_realtime(1);
    for (unsigned i = 0; i < CLOCKS; i++) {
        expect_refused(old[i], EPERM);
        for (unsigned j = 0; j < CLOCKS; j++)
            assert_ptr_not_equal(old[i], now[j]);
    }
    for (unsigned i = 0; i < CLOCKS; i++)
        assert_int_equal(scm_clock_destroy(now[i]), 0);
}

/* Refuses the handle of a clock that still has dates to process. */
TEST(a_clock_that_is_not_emptied_yet_is_refused, fresh)
{
    struct scm_clock *clock = scm_clock_create();

    collection("lazy");
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(scm_clock_refresh(clock, object_new(), i), 0);
    assert_int_equal(scm_clock_destroy(clock), 0);
    assert_int_equal(mem_info().num_dates, 100);
    assert_int_equal(mem_info().num_expired, 100);
    expect_refused(clock, EPERM);
    assert_int_equal(scm_collect(), 0);
    assert_int_equal(end_count, 100);
    assert_int_equal(mem_info().num_dates, 0);
}

TEST(what_never_was_a_clock_is_refused, fresh)
{
    struct scm_clock *clock = scm_clock_create();
    uint64_t value = (uint64_t)(uintptr_t)clock;

    expect_refused((struct scm_clock *)(uintptr_t)(value + (UINT64_C(1) << 32)), EINVAL);
    expect_refused((struct scm_clock *)(uintptr_t)(value & UINT32_MAX ? value & UINT32_MAX : 1),
                   EINVAL);
    expect_refused((struct scm_clock *)(uintptr_t)UINT64_MAX, EINVAL);
    expect_refused((struct scm_clock *)&value, EINVAL);
    assert_int_equal(scm_clock_destroy(clock), 0);
}

static int act_make(void *unused)
{
    handle = scm_clock_create();
    return scm_clock_refresh(handle, object_new(), 1);
}

/* Holds whether the clock's dates have expired since or not. */
TEST(a_dead_threads_clock_is_refused, fresh)
{
    struct actor actor;

    for (unsigned passed = 0; passed < 2; passed++) {
        actor_start(&actor);
        assert_int_equal(does(&actor, act_make, NULL), 0);
        actor_end(&actor);
        ticks(passed ? 3 : 0);
        expect_refused(handle, EPERM);
        ticks(3);
        assert_int_equal(mem_info().num_dates, 0);
        scm_unregister_thread();
    }
}

TEST(unregistering_ends_handles, fresh)
{
    struct scm_clock *clock = scm_clock_create();

    assert_int_equal(scm_clock_refresh(clock, object_new(), 1), 0);
    assert_int_equal(scm_unregister_thread(), 0);
    assert_int_equal(scm_register_thread(), 0);
    expect_refused(clock, EPERM);
    ticks(2);
    assert_int_equal(end_count, 1);
}

/* A clock costs memory only while it exists. */
TEST(clocks_that_come_and_go_leave_nothing, fresh)
{
    uint64_t overhead = 0;

    for (unsigned i = 0; i < 20000; i++) {
        struct scm_clock *clock = scm_clock_create();

        assert_int_equal(scm_clock_refresh(clock, scm_malloc(16), i % 50), 0);
        assert_int_equal(scm_clock_destroy(clock), 0);
        if (i == 100)
            overhead = mem_info().overhead;
    }
    assert_int_equal(mem_info().num_dates, 0);
    assert_true(mem_info().overhead < overhead + 10000);
}

/* Another thread may try a handle at any time. */
static int stop;

static void *tries(void *unused)
{
    if (scm_register_thread())
        abort();
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        struct scm_clock *clock = __atomic_load_n(&handle, __ATOMIC_RELAXED), *checked;
        struct scm_thread *self;
        bool was = false;

        if (!clock)
            continue;
        checked = clock_of_handle(clock, &was);
        self = checked ? __atomic_load_n(&checked->thread, __ATOMIC_RELAXED) : NULL;
        if (self == scm_self || (!checked && !was))
            abort();
    }
    return NULL;
}

TEST(a_handle_may_be_tried_by_any_thread, fresh)
{
    pthread_t threads[2];

    handle = NULL;
    stop = 0;
    threads_start(threads, 2, tries);
    for (unsigned i = 0; i < 3000; i++) {
        struct scm_clock *clock = scm_clock_create();

        __atomic_store_n(&handle, clock, __ATOMIC_RELAXED);
        assert_int_equal(scm_clock_refresh(clock, scm_malloc(16), i % 20), 0);
        assert_int_equal(scm_clock_destroy(clock), 0);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    threads_join(threads, 2);
}

SUITE(scm_test_uses())
