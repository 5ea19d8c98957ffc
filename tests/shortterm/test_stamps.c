/* SPDX-License-Identifier: MIT */
/*
 * Stamps (src/shortterm/stamps.h): an object has one descriptor per clock, however often that clock
 * refreshes it, and still lives exactly until its latest date: over epochs, when threads end and
 * others take over, when another thread owns the stamp, when owners run out, and when there is no
 * memory to queue the descriptor again.
 */
#include "support/scm_test.h"
#include "support/slab_test.h"

static unsigned long dates(void)
{
    return mem_info().num_dates;
}

/* Checks that the object ends at the tick after `extension` more, no sooner. */
static void expect_end_after(const void *object, unsigned extension)
{
    ticks(extension);
    assert_false(has_ended(object));
    ticks(1);
    assert_true(has_ended(object));
    assert_int_equal(dates(), 0);
}

TEST(many_refreshes_are_one_descriptor, fresh)
{
    void *object = object_new();

    for (unsigned i = 0; i <= 100; i++)
        assert_int_equal(scm_refresh(object, i * 7 % 101), 0);
    assert_int_equal(dates(), 1);
    assert_int_equal(mem_info().num_short_term, 1);
    expect_end_after(object, 100);
}

TEST(an_earlier_date_changes_nothing, fresh)
{
    void *object = object_new();

    assert_int_equal(scm_refresh(object, 9), 0);
    assert_int_equal(scm_refresh(object, 2), 0);
    expect_end_after(object, 9);
}

/* Refreshes at every tick, over an epoch's end and over the wrap of dates in stamps; and lazily,
 * where the descriptor is taken late. */
TEST(kept_alive_for_long, fresh)
{
    static const char *const strategies[] = {"eager", "lazy"};

    for (unsigned i = 0; i < 2; i++) {
        void *objects[3] = {object_new(), object_new(), object_new()};

        collection(strategies[i]);
        for (unsigned tick = 0; tick < 2 * STAMP_DATES; tick++) {
            for (unsigned e = 0; e < 3; e++)
                if (tick % (e + 1) == 0)
                    assert_int_equal(scm_refresh(objects[e], e + 1), 0);
            assert_int_equal(end_count, 0);
            scm_tick();
            assert_true(tick % 64 || dates() <= 8); /* briefly some more at an epoch's end */
        }
        /* in lazy mode, no descriptor was taken since */
        assert_int_equal(scm_refresh(objects[1], 1), 0);
        assert_false(has_ended(objects[1]));
        ticks(4);
        assert_int_equal(scm_collect(), 0);
        assert_int_equal(dates(), 0);
        assert_int_equal(end_count, 3);
        end_count = 0;
    }
}

TEST(clocks_do_not_share_a_stamp, fresh)
{
    void *object = object_new();
    struct scm_clock *clock = scm_clock_create();

    assert_int_equal(scm_refresh(object, 1), 0);
    assert_int_equal(scm_global_refresh(object, 3), 0);
    assert_int_equal(scm_clock_refresh(clock, object, 9), 0);
    assert_int_equal(scm_refresh(object, 2), 0);
    assert_int_equal(dates(), 3);
    ticks(3);
    assert_int_equal(dates(), 2);
    assert_int_equal(scm_global_refresh(object, 4), 0); /* owns the stamp from now on */
    assert_int_equal(scm_global_refresh(object, 9), 0);
    assert_int_equal(scm_refresh(object, 1), 0);
    assert_int_equal(dates(), 4);
    assert_int_equal(scm_clock_destroy(clock), 0);
    global_ticks(11);
    ticks(2);
    assert_false(has_ended(object));
    assert_int_equal(dates(), 1);
    global_ticks(1);
    assert_true(has_ended(object));
}

/* Each thread that refreshes has its own latest date, whichever thread owns the stamp. */
TEST(two_threads_refresh_one_object, fresh)
{
    struct actor other;
    void *object = object_new();

    actor_start(&other);
    assert_int_equal(scm_refresh(object, 3), 0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(refreshes(&other, object, 4 - i), 0);
    assert_int_equal(refreshes(&other, object, 9), 0);
    assert_int_equal(scm_refresh(object, 5), 0);
    assert_int_equal(dates(), 6);
    ticks(6);
    assert_int_equal(dates(), 5);
    assert_int_equal(refreshes(&other, object, 10), 0); /* owns the stamp */
    assert_int_equal(refreshes(&other, object, 12), 0);
    assert_int_equal(dates(), 6);
    assert_int_equal(scm_refresh(object, 0), 0);
    for (unsigned i = 0; i < 13; i++) {
        assert_false(has_ended(object));
        assert_int_equal(does(&other, act_tick, NULL), 0);
    }
    assert_false(has_ended(object)); /* this thread's date keeps it */
    assert_int_equal(dates(), 1);
    ticks(1);
    assert_true(has_ended(object));
    actor_end(&other);
}

#define MANY 40
static void *of_many[MANY];

/* Gives dates up to 30; the latest is not the descriptor's. */
static int act_refresh_many(void *unused)
{
    int error = 0;

    for (unsigned i = 0; i < MANY; i++)
        error |= scm_refresh(of_many[i], i % 3) | scm_refresh(of_many[i], 20 + i % 11);
    return error;
}

static void expect_many_after(unsigned ticked, bool exactly)
{
    for (unsigned i = 0; i < MANY; i++) {
        if (ticked <= 20 + i % 11)
            assert_false(has_ended(of_many[i]));
        else if (exactly)
            assert_true(has_ended(of_many[i]));
    }
}

TEST(an_heir_goes_on_with_stamps, fresh)
{
    struct actor actor;

    for (unsigned i = 0; i < MANY; i++)
        of_many[i] = object_new();
    actor_start(&actor);
    assert_int_equal(does(&actor, act_refresh_many, NULL), 0);
    actor_end(&actor);
    assert_int_equal(scm_register_thread(), 0);
    for (unsigned ticked = 1; ticked < 40; ticked++) {
        ticks(1);
        expect_many_after(ticked, true);
    }
    assert_int_equal(dates(), 0);
}

/* A participating thread takes over list by list; a new one takes the rest as a whole. */
TEST(survivors_take_over_stamps, fresh)
{
    for (unsigned taken = 0; taken < 40; taken += 2) {
        struct actor actor, heir;

        end_count = 0;
        assert_int_equal(scm_register_thread(), 0);
        for (unsigned i = 0; i < MANY; i++)
            of_many[i] = object_new();
        actor_start(&actor);
        assert_int_equal(does(&actor, act_refresh_many, NULL), 0);
        actor_end(&actor);
        ticks(taken);
        actor_start(&heir);
        assert_int_equal(does(&heir, act_register, NULL), 0);
        expect_many_after(taken, false);
        for (unsigned i = 0; i < 20 && i + taken < 20; i++) {
            assert_int_equal(does(&heir, act_tick, NULL), 0);
            ticks(1);
        }
        expect_many_after(taken < 20 ? 20 : taken, false);
        for (unsigned i = 0; i < 40; i++) {
            assert_int_equal(does(&heir, act_tick, NULL), 0);
            ticks(1);
        }
        assert_int_equal(end_count, MANY);
        assert_int_equal(dates(), 0);
        actor_end(&heir);
    }
}

/* Each tick takes over one of an orphan's lists, and each list has a unit less than the one
 * before, so they meet at one date. A page whose stamps are later than that date stays, others
 * are copied. */
TEST(merged_lists_forget_no_stamp, fresh)
{
    enum { THREADS = 60 };
    void *objects[THREADS];
    struct actor actors[THREADS];

    ticks(30); /* past an epoch's end */
    for (unsigned i = 0; i < THREADS; i++) {
        objects[i] = object_new();
        actor_start(&actors[i]);
        assert_int_equal(refreshes(&actors[i], objects[i], 100 - i), 0);
        if (i % 2)
            assert_int_equal(refreshes(&actors[i], objects[i], 400 - i), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        actor_end(&actors[i]);
    ticks(100);
    assert_int_equal(end_count, 0);
    ticks(3);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(has_ended(objects[i]), !(i % 2));
    for (unsigned i = 1; i < THREADS; i += 2) /* this thread has taken over the stamps */
        assert_int_equal(scm_refresh(objects[i], 500), 0);
    assert_int_equal(dates(), THREADS / 2);
    ticks(500);
    assert_int_equal(end_count, THREADS / 2);
    ticks(1);
    assert_int_equal(end_count, THREADS);
    assert_int_equal(dates(), 0);
}

/* The object of a copied descriptor has no stamp, and may get a new one. */
TEST(a_copied_descriptor_leaves_its_stamp, fresh)
{
    struct actor actors[2];
    void *objects[2] = {object_new(), object_new()};

    ticks(30);
    for (unsigned i = 0; i < 2; i++) {
        actor_start(&actors[i]);
        assert_int_equal(refreshes(&actors[i], objects[i], 50 - i), 0);
    }
    for (unsigned i = 0; i < 2; i++)
        actor_end(&actors[i]);
    ticks(4);
    assert_int_equal(dates(), 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(scm_refresh(objects[i], 60), 0);
        assert_int_equal(scm_refresh(objects[i], 70), 0);
    }
    assert_int_equal(dates(), 2 + 2 + 1);
    ticks(70);
    assert_int_equal(end_count, 0);
    ticks(1);
    assert_int_equal(end_count, 2);
    assert_int_equal(dates(), 0);
}

static int act_refresh_both(void *unused)
{
    return scm_refresh(of_many[0], 1) | scm_refresh(of_many[1], 50);
}

/* This thread has one list of an orphan, and its heir the other: an object that the heir
 * refreshes lasts by the heir's clock. */
TEST(a_divided_orphan_owns_nothing, fresh)
{
    struct actor actor, heir;

    of_many[0] = object_new();
    of_many[1] = object_new();
    actor_start(&actor);
    assert_int_equal(does(&actor, act_refresh_both, NULL), 0);
    assert_int_equal(scm_register_thread(), 0);
    actor_end(&actor);
    ticks(1);
    actor_start(&heir);
    assert_int_equal(does(&heir, act_register, NULL), 0);
    assert_int_equal(refreshes(&heir, of_many[0], 30), 0);
    ticks(100);
    assert_false(has_ended(of_many[0]));
    for (unsigned i = 0; i < 60; i++)
        assert_int_equal(does(&heir, act_tick, NULL), 0);
    assert_int_equal(end_count, 2);
    actor_end(&heir);
}

static int act_global_refresh_both(void *unused)
{
    return scm_global_refresh(of_many[0], 1) | scm_global_refresh(of_many[1], 50);
}

/* The same by global time. The heir's clock stops while the heir is blocked, whatever the other
 * thread does. */
TEST(a_divided_orphan_owns_nothing_by_global_time, fresh)
{
    struct actor actor, heir;

    of_many[0] = object_new();
    of_many[1] = object_new();
    actor_start(&actor);
    assert_int_equal(does(&actor, act_global_refresh_both, NULL), 0);
    assert_int_equal(scm_register_thread(), 0);
    actor_end(&actor);
    global_ticks(1);
    actor_start(&heir);
    assert_int_equal(does(&heir, act_register, NULL), 0);
    assert_int_equal(global_refreshes(&heir, of_many[0], 3), 0);
    assert_int_equal(does(&heir, act_block, NULL), 0);
    global_ticks(100);
    assert_false(has_ended(of_many[0]));
    assert_int_equal(does(&heir, act_resume, NULL), 0);
    for (unsigned i = 0; i < 60; i++) {
        assert_int_equal(does(&heir, act_global_tick, NULL), 0);
        global_ticks(1);
    }
    assert_int_equal(end_count, 2);
    actor_end(&heir);
}

/* The only number is still used in an ended thread's pages, so no other thread gets it. */
TEST(an_owner_is_not_used_twice, fresh)
{
    struct actor first, second;
    void *object = object_new();

    scm_owners = 2;
    assert_int_equal(scm_register_thread(), 0);
    actor_start(&first);
    assert_int_equal(refreshes(&first, object, 1), 0);
    assert_int_equal(expiry_count_of(object)->stamp >> STAMP_DATE_BITS, 1);
    actor_end(&first);
    ticks(1);
    actor_start(&second);
    assert_int_equal(refreshes(&second, object_new(), 30), 0); /* would own the number now */
    assert_int_equal(refreshes(&second, object, 30), 0);
    ticks(100);
    assert_false(has_ended(object));
    for (unsigned i = 0; i < 31; i++)
        assert_int_equal(does(&second, act_tick, NULL), 0);
    assert_true(has_ended(object));
    actor_end(&second);
    scm_owners = STAMP_OWNERS;
}

static void *waiting;
static uint64_t first_date;

/* Ticks without taking descriptors, until the date of `waiting` in its page is as old as dates
 * in stamps can report it, and older. */
static int tick_for_long(void *unused)
{
    do {
        assert_int_equal(scm_refresh(waiting, 1), 0);
        assert_int_equal(scm_tick(), 0);
    } while (scm_self->local.now < first_date + STAMP_DATES);
    return 0;
}

/* A stamp is as late as the page's again, modulo 2^18; the object stays alive. */
TEST(taken_very_late, fresh)
{
    void *object = scm_malloc(16);
    int finalizer = scm_register_finalizer(tick_for_long);

    waiting = object_new();
    collection("lazy");
    ticks(30);
    assert_int_equal(scm_set_finalizer(object, finalizer), 0);
    first_date = scm_self->local.now;
    assert_int_equal(scm_refresh(object, 0), 0);
    assert_int_equal(scm_refresh(waiting, 0), 0);
    ticks(1);
    assert_int_equal(scm_collect(), 0);
    assert_false(has_ended(waiting));
    ticks(1);
    assert_int_equal(scm_collect(), 0);
    assert_true(has_ended(waiting));
    assert_int_equal(dates(), 0);
}

/* Dates beyond the range of stamps cost a descriptor each. */
TEST(far_dates_are_descriptors, fresh)
{
    void *object = object_new();

    assert_int_equal(prudence_option_set("scm_max_extension", "1048576"), 0);
    assert_int_equal(scm_refresh(object, 3), 0);
    assert_int_equal(scm_refresh(object, STAMP_DATES + 1), 0);
    assert_int_equal(scm_refresh(object, 5), 0);
    assert_int_equal(scm_refresh(object, STAMP_DATES / 2 + 1), 0);
    expect_end_after(object, STAMP_DATES + 1);
}

static int act_keep(void *object)
{
    return scm_refresh(object, 2) | scm_refresh(object, 3) | scm_tick();
}

/* There are more clocks than owners; a clock without one makes a descriptor for each refresh.
 * Owners of ended threads, and of past epochs, are reused. */
TEST(owners_run_out_and_come_back, fresh)
{
    enum { THREADS = 12, OWNERS = 8 };
    struct actor actors[THREADS];
    void *objects[THREADS];

    scm_owners = OWNERS;
    for (unsigned round = 0; round < 4; round++) {
        unsigned stamped = 0;

        for (unsigned i = 0; i < THREADS; i++) {
            unsigned long before = dates();

            objects[i] = object_new();
            actor_start(&actors[i]);
            assert_int_equal(does(&actors[i], act_keep, objects[i]), 0);
            stamped += dates() == before + 1;
        }
        assert_true(stamped > 0 && stamped < OWNERS);
        for (unsigned tick = 0; tick < 3; tick++) {
            for (unsigned i = 0; i < THREADS; i++) {
                assert_false(has_ended(objects[i]));
                assert_int_equal(does(&actors[i], act_tick, NULL), 0);
            }
        }
        for (unsigned i = 0; i < THREADS; i++) {
            assert_true(has_ended(objects[i]));
            actor_end(&actors[i]);
        }
        assert_int_equal(dates(), 0);
        end_count = 0;
    }
    scm_owners = STAMP_OWNERS;
}

/* A descriptor that cannot be queued again stays, and so does the object; other expired objects
 * wait after it. */
TEST(no_memory_to_queue_again, fresh)
{
    void *object = object_new(), *other = object_new();

    assert_int_equal(scm_refresh(object, 0), 0);
    assert_int_equal(scm_refresh(other, 0), 0);
    assert_int_equal(scm_refresh(object, 7), 0);
    page_spare_free(scm_self);
    memory_fail(0, UINT32_MAX);
    while (prudence_cache_alloc(pages_cache())) /* everything in the descriptors' cache */
        ;
    ticks(3);
    assert_int_equal(end_count, 0);
    assert_int_equal(dates(), 2);
    memory_succeed();
    ticks(1);
    assert_true(has_ended(other));
    expect_end_after(object, 3);
}

SUITE(scm_test_uses())
