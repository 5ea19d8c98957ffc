/* SPDX-License-Identifier: MIT */
/* The helper works once at its start, and again after each kick, whenever that comes. */
#include "support/gp_reader.h"
#include "support/slab_test.h"

static uint32_t rounds;

static bool work(void)
{
    add_relaxed(&rounds, 1u);
    return false;
}

static void expect_rounds(unsigned least)
{
    for (unsigned i = 0; i < 2000 && load_relaxed(&rounds) < least; i++)
        pause_ms(1);
    assert_true(load_relaxed(&rounds) >= least);
}

/* Right after a round, the helper does not sleep yet. */
TEST(no_kick_is_lost)
{
    os_idle_kick(); /* no helper yet */
    assert_int_equal(load_relaxed(&rounds), 0);
    os_idle_start(work);
    for (unsigned i = 1; i <= 50; i++) {
        expect_rounds(i);
        if (i % 10 == 0)
            pause_ms(3); /* the helper sleeps */
        os_idle_kick();
    }
    expect_rounds(51);
}

SUITE()
