/* SPDX-License-Identifier: MIT */
/*
 * One thread and its local clock: thesis, sections 3, 3.1, 4.2.2 and 4.2.3.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/scm_test.h"

TEST(an_object_without_a_date_is_permanent, fresh)
{
    void *object = object_new();

    ticks(100);
    assert_false(has_ended(object));
    scm_free(object);
    ticks(100);
    assert_int_equal(end_count, 0); /* freed, not expired */
}

/* "The object expires after (e + 1) tick calls." */
TEST(it_expires_after_e_plus_1_ticks, fresh)
{
    static const unsigned extensions[] = {0, 1, 2, 3, 10, 15, 16, 17, 100, 4095};

    for (unsigned i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        void *object = object_new();

        end_count = 0;
        assert_int_equal(scm_refresh(object, extensions[i]), 0);
        ticks(extensions[i]);
        assert_false(has_ended(object));
        ticks(1);
        assert_true(has_ended(object));
    }
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

/* Dates count from the clock's time when they are given. */
TEST(the_date_is_now_plus_e, fresh)
{
    void *early = object_new(), *late = object_new();

    assert_int_equal(scm_refresh(early, 3), 0);
    ticks(2);
    assert_int_equal(scm_refresh(late, 3), 0);
    ticks(2);
    assert_true(has_ended(early));
    ticks(1);
    assert_false(has_ended(late));
    ticks(1);
    assert_true(has_ended(late));
}

/* "The largest expiration extension determines the effective expiration date." Extensions do not
 * add up. */
TEST(the_largest_extension_counts, fresh)
{
    static const unsigned orders[][3] = {{1, 5, 3}, {5, 3, 1}, {3, 1, 5}, {5, 5, 5}, {5, 0, 5}};

    for (unsigned i = 0; i < sizeof orders / sizeof *orders; i++) {
        void *object = object_new();

        end_count = 0;
        for (unsigned j = 0; j < 3; j++)
            assert_int_equal(scm_refresh(object, orders[i][j]), 0);
        ticks(5);
        assert_false(has_ended(object));
        ticks(1);
        assert_true(has_ended(object));
        assert_int_equal(end_count, 1);
    }
}

TEST(a_refresh_in_time_prolongs, fresh)
{
    void *object = object_new();

    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(scm_refresh(object, 1), 0);
        ticks(1);
        assert_false(has_ended(object));
    }
    ticks(1);
    assert_true(has_ended(object));
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

/* "If time does not advance the heap will grow": nothing expires by itself. */
TEST(without_ticks_nothing_expires, fresh)
{
    void *object = object_new();

    assert_int_equal(scm_refresh(object, 0), 0);
    for (unsigned i = 0; i < 1000; i++) {
        void *more = scm_malloc(48);

        assert_int_equal(scm_refresh(more, 0), 0);
        assert_int_equal(scm_collect(), 0);
    }
    assert_false(has_ended(object));
    assert_int_equal(mem_info().num_short_term, 1001);
    ticks(1);
    assert_true(has_ended(object));
    assert_int_equal(mem_info().num_short_term, 0);
}

/* More descriptors of one date than a page holds. */
TEST(many_objects_share_a_date, fresh)
{
    enum { MANY = 10 * PAGE_OBJECTS + 7 };

    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(scm_refresh(scm_malloc(16), 2), 0);
    assert_int_equal(mem_info().num_dates, MANY);
    ticks(2);
    assert_int_equal(mem_info().num_short_term, MANY);
    ticks(1);
    assert_int_equal(mem_info().num_short_term, 0);
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

/* The ring grows with dates on it, at any position. */
TEST(a_longer_extension_moves_no_date, fresh)
{
    for (unsigned turn = 0; turn < 40; turn++) {
        void *objects[16], *far = object_new();

        scm_unregister_thread();
        fresh(NULL);
        for (unsigned i = 0; i < 16; i++) {
            objects[i] = object_new();
            assert_int_equal(scm_refresh(objects[i], i), 0);
        }
        ticks(turn % 16);
        assert_int_equal(scm_refresh(far, 20 + turn * 25), 0);
        for (unsigned i = turn % 16; i < 16; i++) {
            assert_false(has_ended(objects[i]));
            ticks(1);
            assert_true(has_ended(objects[i]));
        }
        ticks(20 + turn * 25 - (16 - turn % 16));
        assert_false(has_ended(far));
        ticks(1);
        assert_true(has_ended(far));
    }
}

TEST(null_is_ignored, fresh)
{
    assert_int_equal(scm_refresh(NULL, 1), 0);
    assert_int_equal(scm_global_refresh(NULL, 1), 0);
    scm_free(NULL);
    ticks(5);
}

SUITE(scm_test_uses())
