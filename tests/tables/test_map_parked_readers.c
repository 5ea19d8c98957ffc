/* SPDX-License-Identifier: MIT */
/*
 * A reader of an ordered map is stopped between any two of its instructions (under the processor's
 * trap flag, support/step.h), and updates change its nodes in all possible ways. Then it continues:
 * keys that stay are found; ceiling and floor skip none of them; a walk's keys rise, and include
 * those that stay exactly once.
 *
 * ctest: cost 20
 * ctest: needs steps
 */
#define _GNU_SOURCE
#include <limits.h>

#include "support/map_cases.h"
#include "support/deep.h"
#include "support/step.h"

#define STOPS 3 /* about this many of the instructions of each read */

/* ------------------------------------------------------------- updates between steps of readers */

static unsigned here, asked;
static const struct reader *reader;
static bool everything[ITEMS_MOST];

enum plan {
    PLAN_COME,
    PLAN_GO,
    PLAN_COME_AND_GO, /* may replace all nodes; the keys stay the same */
    PLAN_GO_AND_COME,
    PLAN_SWAP, /* inserts every other key, then removes the keys that were present */
    PLANS,
};
static enum plan plan;

/* Runs before and after the event. */
static void put_back(bool before)
{
    if (before && (plan == PLAN_GO || plan == PLAN_GO_AND_COME))
        come(0, 1);
    if (before &&
        plan == PLAN_SWAP) { /* in this order, so that a reader passes empty slots first */
        come(0, 2);
        come(1, 2);
        go(0, 2);
    }
    if (!before && (plan == PLAN_COME || plan == PLAN_GO_AND_COME))
        go(0, 1);
    if (!before && plan == PLAN_SWAP)
        go(0, 2);
}

static void happen(const greg_t *registers)
{
    if (looks++ != here)
        return;
    if (plan == PLAN_COME || plan == PLAN_COME_AND_GO)
        come(0, 1);
    if (plan == PLAN_SWAP)
        come(0, 2);
    if (plan == PLAN_SWAP)
        go(1, 2);
    else if (plan != PLAN_COME)
        go(0, 1);
    if (plan == PLAN_GO_AND_COME)
        come(0, 1);
    step_enough = true;
}

static void read_once(void *unused)
{
    prudence_read_lock();
    reader->read(asked);
    prudence_read_unlock();
}

static void stop_reader(bool everywhere)
{
    uint64_t all;
    unsigned stride;

    here = UINT_MAX;
    looks = 0;
    step_through(read_once, NULL, happen);
    all = looks;
    assert_true(all > 10);
    stride = everywhere ? deep_stride(5) : 1 + (unsigned)all / STOPS;
    for (here = asked % 3; here < all; here += stride) {
        looks = 0;
        step_through(read_once, NULL, happen);
        assert_true(looks > here);
        reader->check(asked, stays, everything);
        put_back(false);
        put_back(true);
    }
}

static void readers_of(const struct test_case *at, enum plan what)
{
    plan = what;
    begin_case(at);
    memset(everything, true, sizeof everything);
    put_back(true);
    for (asked = 0; asked < key_count; asked += reader == &walks ? ITEMS_MOST : 1 + key_count / 2)
        stop_reader(at->everywhere && plan == PLAN_SWAP && reader != &walks);
    if (plan == PLAN_GO || plan == PLAN_GO_AND_COME)
        go(0, 1);
    if (plan == PLAN_SWAP)
        go(1, 2);
    end_case();
}

static void stopped_anywhere(const struct reader *what)
{
    reader = what;
    for (unsigned i = 0; i < CASES; i++)
        for (unsigned p = 0; p < PLANS; p++)
            readers_of(&cases[i], (enum plan)p);
}

TEST(a_lookup_may_be_stopped_anywhere)
{
    stopped_anywhere(&lookups);
}

TEST(a_ceiling_may_be_stopped_anywhere)
{
    stopped_anywhere(&ceilings);
}

TEST(a_floor_may_be_stopped_anywhere)
{
    stopped_anywhere(&floors);
}

TEST(a_walk_may_be_stopped_anywhere)
{
    stopped_anywhere(&walks);
}

/* Steps would restart a sequence for ever. */
SUITE(prudence_option_set("rseq", "0"))
