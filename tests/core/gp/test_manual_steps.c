/* SPDX-License-Identifier: MIT */
/*
 * Another thread advances a manual domain between any two instructions of an advance: a grace
 * period that is over stays over, and each is counted once.
 *
 * ctest: needs steps
 */
#define _GNU_SOURCE

#include <prudence/poll.h>

#include "gp/user/domain.h"
#include "support/step.h"
#include "support/suite.h"

static struct prudence_domain *domain;
static unsigned step, act_at;
static bool acted;
static prudence_gp_t over;

static void advance(void *unused)
{
    prudence_manual_advance(domain);
}

static void advance_at_step(const greg_t *registers)
{
    if (step++ != act_at)
        return;
    over = prudence_domain_get_state(domain);
    prudence_manual_advance(domain);
    acted = step_enough = true;
}

/* Returns whether another advance came between. */
static bool advance_twice(void)
{
    uint64_t before = load_relaxed(&domain->grace_periods);

    step = 0;
    acted = false;
    over = prudence_domain_get_completed(domain);
    step_through(advance, NULL, advance_at_step);
    if (!prudence_domain_poll_state(domain, over))
        fail_msg("before instruction %u: a grace period that was over is not any more", act_at);
    assert_int_equal(load_relaxed(&domain->grace_periods), before + 1 + acted);
    return acted;
}

TEST(what_is_over_stays_over)
{
    domain = prudence_domain_create("manual", PRUDENCE_DOMAIN_MANUAL, NULL);
    for (act_at = 0; advance_twice();)
        act_at++;
    assert_true(act_at > 10);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

SUITE()
