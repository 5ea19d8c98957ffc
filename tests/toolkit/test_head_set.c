/* SPDX-License-Identifier: MIT */
/*
 * The set of heads that wait: a head that is in it is found, whichever heads have come and gone,
 * and however often the set has grown.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/suite.h"

#include "toolkit/domains/head_set.h"

#define HEADS 20000

static struct head_set set;
static char heads[HEADS][16];

static void expect_added(unsigned first, unsigned step, bool added)
{
    for (unsigned i = first; i < HEADS; i += step)
        if (head_set_add(&set, heads[i]) != added)
            fail_msg("head %u", i);
}

static void remove_each(unsigned first, unsigned step)
{
    for (unsigned i = first; i < HEADS; i += step)
        head_set_remove(&set, heads[i]);
}

TEST(heads_stay_when_others_leave)
{
    expect_added(0, 1, true);
    expect_added(0, 1, false);
    remove_each(0, 3);
    expect_added(1, 3, false);
    expect_added(2, 3, false);
    expect_added(0, 3, true);
    remove_each(0, 1);
    assert_int_equal(set.used, 0);
    remove_each(0, 1); /* of heads that are not in the set */
    expect_added(0, 1, true);
}

SUITE()
