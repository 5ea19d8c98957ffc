/* SPDX-License-Identifier: MIT */
/*
 * A thread unregisters its region. Between any two instructions (support/step.h), another thread's
 * tick ends the region's last date, and may use the place for a region of its own.
 *
 * ctest: needs steps
 */
#define _GNU_SOURCE
#include "support/scm_test.h"
#include "support/step.h"

#include "shortterm/regions.h"

static struct scm_region *region, *next;
static struct actor other;
static unsigned steps, here, reused; /* places that are used again */
static bool uses_the_place;
static int unregistered, ended;

static int act_create(void *unused)
{
    (void)unused;
    next = scm_region_create();
    return next ? 0 : errno;
}

static int act_refresh_region(void *unused)
{
    (void)unused;
    return scm_region_refresh(region, 0);
}

static int act_fill_and_unregister(void *unused)
{
    (void)unused;
    return scm_region_alloc(next, 8) ? scm_region_unregister(next) : errno;
}

static void other_ends_it(const greg_t *registers)
{
    (void)registers;
    if (steps++ != here)
        return;
    ended = does(&other, act_tick, NULL);
    if (uses_the_place && !ended)
        ended = does(&other, act_create, NULL);
}

static void unregister(void *unused)
{
    (void)unused;
    unregistered = scm_region_unregister(region);
}

/* Returns false if the call took fewer steps. */
static bool stop_unregister(void)
{
    region = scm_region_create();
    assert_non_null(scm_region_alloc(region, 100));
    assert_int_equal(does(&other, act_refresh_region, NULL), 0);
    steps = 0;
    ended = -1;
    step_through(unregister, NULL, other_ends_it);
    assert_int_equal(unregistered, 0);
    if (steps <= here)
        return false;
    assert_int_equal(ended, 0);
    assert_int_equal(region_owner(region_at(region), region), 0);
    if (uses_the_place) {
        reused += region_at(next) == region_at(region);
        assert_int_equal(does(&other, act_fill_and_unregister, NULL), 0);
    }
    assert_int_equal(region_info().bytes, 0);
    return true;
}

TEST(another_thread_may_end_it_in_the_midst_of_unregister, fresh)
{
    actor_start(&other);
    for (unsigned uses = 0; uses < 2; uses++) {
        uses_the_place = uses;
        for (here = 0; stop_unregister(); here++) {
        }
        assert_true(here > 20 && (!uses || reused > here / 2));
        assert_int_equal(does(&other, act_tick, NULL), 0);
    }
    actor_end(&other);
    assert_int_equal(region_info().regions, 0);
    assert_int_equal(region_info().bytes, 0);
}

/* Steps would restart a sequence for ever. */
SUITE(prudence_option_set("rseq", "0"))
