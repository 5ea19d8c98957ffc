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

static void *both[2];

static int act_refresh_both(void *unused)
{
    return scm_refresh(both[0], 1) | scm_refresh(both[1], 50);
}

static int act_global_refresh_both(void *unused)
{
    return scm_global_refresh(both[0], 1) | scm_global_refresh(both[1], 50);
}

/* This thread has one list of an orphan, and its heir the other: an object that the heir refreshes
 * lasts by the heir's clock, which stands still while the heir does not tick. */
static void divide_orphan(int (*give)(void *), int (*give_again)(void *), int (*tick)(void *))
{
    struct actor actor, heir;

    both[0] = object_new();
    both[1] = object_new();
    end_count = 0;
    actor_start(&actor);
    assert_int_equal(does(&actor, give, NULL), 0);
    assert_int_equal(scm_register_thread(), 0);
    actor_end(&actor);
    assert_int_equal(tick(NULL), 0);
    actor_start(&heir);
    assert_int_equal(does(&heir, act_register, NULL), 0);
    assert_int_equal(does(&heir, give_again, &(struct refreshing){both[0], 30}), 0);
    assert_int_equal(does(&heir, act_block, NULL), 0);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(tick(NULL), 0);
    assert_false(has_ended(both[0]));
    assert_int_equal(does(&heir, act_resume, NULL), 0);
    for (unsigned i = 0; i < 60; i++) {
        assert_int_equal(does(&heir, tick, NULL), 0);
        assert_int_equal(tick(NULL), 0);
    }
    assert_int_equal(end_count, 2);
    actor_end(&heir);
}

TEST(a_divided_orphan_owns_nothing, fresh)
{
    divide_orphan(act_refresh_both, act_refresh, act_tick);
    divide_orphan(act_global_refresh_both, act_global_refresh, act_global_tick);
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
