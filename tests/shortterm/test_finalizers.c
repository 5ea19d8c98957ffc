/* SPDX-License-Identifier: MIT */
/* Finalizers: thesis, section 4.5. */
#include "support/scm_test.h"

static void *seen;
static unsigned calls;
static struct scm_clock *clock_of_mine;

static int keep(void *object)
{
    seen = object;
    calls++;
    return 1;
}

static int refresh_and_keep(void *object)
{
    calls++;
    assert_int_equal(scm_refresh(object, 1), 0);
    return 1;
}

static int refresh_and_forget(void *object)
{
    calls++;
    assert_int_equal(scm_refresh(object, 1), 0);
    return 0;
}

static int free_and_keep(void *object)
{
    calls++;
    scm_free(object);
    return 1;
}

static bool inside;

static int free_others(void *object)
{
    assert_false(inside); /* no finalizer runs inside another */
    inside = true;
    calls++;
    for (unsigned i = 0; i < 300; i++)
        assert_int_equal(scm_refresh(scm_malloc(16), 0), 0);
    assert_int_equal(scm_tick(), 0);
    assert_int_equal(scm_global_tick(), 0);
    assert_int_equal(scm_collect(), 0);
    assert_int_equal(scm_unregister_thread(), EPERM);
    inside = false;
    return 0;
}

static int destroy_a_clock(void *object)
{
    return scm_clock_destroy(clock_of_mine) != 0;
}

static void *short_term(int (*finalizer)(void *))
{
    void *object = scm_malloc(48);
    int number = scm_register_finalizer(finalizer);

    assert_true(number >= 0);
    assert_int_equal(scm_set_finalizer(object, number), 0);
    assert_int_equal(scm_refresh(object, 0), 0);
    calls = 0;
    return object;
}

/* "By returning a non-zero integer ... LIBSCM will not free the object. The programmer must take
 * care of reusing the object by either freeing it using scm_free or by setting a new expiration
 * extension." */
TEST(non_zero_keeps_the_object, fresh)
{
    void *object = short_term(keep);

    ticks(1);
    assert_ptr_equal(seen, object);
    assert_int_equal(calls, 1);
    ticks(10);
    assert_int_equal(calls, 1);
    /* short-term again, and the finalizer is still bound */
    assert_int_equal(scm_refresh(object, 0), 0);
    ticks(1);
    assert_int_equal(calls, 2);
    assert_int_equal(mem_info().num_short_term, 0);
    scm_free(object);
}

/* Without the finalizer, which would have kept it ("permanent"), the object is freed. */
TEST(a_finalizer_can_be_taken_back, fresh)
{
    void *object = short_term(keep);
    uint64_t collected = mem_info().num_collected;

    assert_int_equal(scm_set_finalizer(object, -1), 0);
    ticks(1);
    assert_int_equal(calls, 0);
    assert_int_equal(mem_info().num_collected, collected + 1);
}

TEST(a_finalizer_may_refresh, fresh)
{
    void *object = short_term(refresh_and_keep);

    for (unsigned i = 1; i < 10; i++) {
        ticks(1);
        assert_int_equal(calls, i);
        ticks(1);
        assert_int_equal(calls, i);
    }
    assert_int_equal(scm_set_finalizer(object, witness()), 0);
    ticks(2);
    assert_true(has_ended(object));
}

/* Dates given by the finalizer count, whatever it returns. */
TEST(a_refreshed_object_is_kept_in_any_case, fresh)
{
    void *object = short_term(refresh_and_forget);

    ticks(1);
    assert_int_equal(calls, 1);
    assert_int_equal(scm_set_finalizer(object, witness()), 0);
    ticks(1);
    assert_false(has_ended(object));
    ticks(1);
    assert_true(has_ended(object));
}

TEST(a_finalizer_may_free_by_itself, fresh)
{
    short_term(free_and_keep);
    ticks(1);
    assert_int_equal(calls, 1);
    assert_int_equal(mem_info().num_short_term, 0);
}

/* Calls in a finalizer do not collect: no finalizer runs inside another. */
TEST(a_finalizer_may_call_anything, fresh)
{
    short_term(free_others);
    short_term(free_others);
    ticks(1);
    assert_int_equal(calls, 2);
    ticks(1);
    assert_int_equal(mem_info().num_dates, 0);
    clock_of_mine = scm_clock_create();
    assert_int_equal(scm_clock_refresh(clock_of_mine, scm_malloc(16), 9), 0);
    short_term(destroy_a_clock);
    ticks(1);
    assert_int_equal(mem_info().num_dates, 0);
}

static int end_the_thread(void *object)
{
    pthread_exit(NULL);
}

static void *expires_two(void *objects)
{
    void **object = objects;

    scm_refresh(object[0], 0);
    scm_refresh(object[1], 0);
    scm_tick(); /* does not return */
    return object;
}

/* Another thread inherits the dates, and no thread waits for it. */
TEST(a_finalizer_may_end_its_thread, fresh)
{
    void *objects[2] = {scm_malloc(48), object_new()}, *result;
    struct scm_mem_info before = mem_info(), after;
    pthread_t thread;

    assert_int_equal(scm_set_finalizer(objects[0], scm_register_finalizer(end_the_thread)), 0);
    assert_int_equal(pthread_create(&thread, NULL, expires_two, objects), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
    assert_int_equal(mem_info().threads, 0);
    assert_false(has_ended(objects[1]));
    ticks(1);
    assert_true(has_ended(objects[1]));
    after = mem_info(); /* exact, although that call did not return */
    assert_int_equal(after.num_dates, 0);
    assert_int_equal(after.num_expired, 0);
    assert_int_equal(after.num_short_term, 0);
    assert_int_equal(after.num_collected - before.num_collected, 1);
    assert_int_equal(after.num_freed - before.num_freed, 1);
    scm_free(objects[0]); /* as if it had been kept */
}

/* The binding ends with the object: the next object at this address has none. */
TEST(the_binding_ends_with_the_object, fresh)
{
    calls = 0;
    for (unsigned i = 0; i < 1000; i++) {
        void *object = object_new();

        assert_int_equal(scm_refresh(object, 0), 0); /* bound, so the finalizer is called */
        ticks(1);
        assert_int_equal(end_count, i + 1);
        object = scm_malloc(48);
        assert_int_equal(scm_refresh(object, 0), 0);
        ticks(1);
        assert_int_equal(end_count, i + 1);
        object = scm_malloc(48);
        assert_int_equal(scm_set_finalizer(object, witness()), 0);
        scm_free(object); /* permanent, so the finalizer is not called */
    }
    assert_int_equal(calls, 0);
}

TEST(there_are_32, fresh)
{
    int number, last = -1;

    while ((number = scm_register_finalizer(keep)) >= 0)
        last = number;
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(last, SCM_FINALIZERS - 1);
    assert_int_equal(scm_register_finalizer(NULL), -1);
    assert_int_equal(errno, EINVAL);
}

SUITE(scm_test_uses())
