/* SPDX-License-Identifier: MIT */
/*
 * fork copies page after page while other threads run, so of two stores to different pages the
 * child may see only the later: a grace period completed that never began, or drivers that rely on
 * fences which readers do not make. The child repairs that.
 *
 * ctest: not-with thread (one thread)
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include "support/suite.h"

#include <prudence/prudence.h>

#include "gp/user/domain.h"
#include "gp/user/process_life.h"
#include "support/gp_child.h"
#include "toolkit/domains/phases.h"

static struct prudence_domain *domains[2];

/* Runs the second half of a fork in a forked, single-threaded child, after the copy was torn. */
static void be_forked(void)
{
    gp_fork_prepare();
    gp_fork_child(true);
    gp_fork_done();
}

static int sequence_behind(void *argument)
{
    struct prudence_domain *domain = argument;
    prudence_gp_t cookie;

    prudence_domain_read_lock(domain);
    domain->progress.completed = domain->shared.sequence + 3 * GP_STEP;
    domain->barrier_goal = domain->shared.sequence + 4 * GP_STEP;
    be_forked();
    cookie = prudence_domain_start_poll(domain);
    if (!sequence_before(domain->barrier_goal, cookie.private_value))
        return 1;                                   /* the driver would skip the barrier */
    if (prudence_domain_poll_state(domain, cookie)) /* inside a section that began before it */
        return 2;
    prudence_domain_read_unlock(domain);
    return prudence_domain_poll_state(domain, cookie) ? 42 : 3;
}

TEST(no_grace_period_is_over_before_it_began)
{
    for (unsigned i = 0; i < 2; i++) {
        assert_child(sequence_behind, domains[i]);
    }
}

static int mode_torn(void *argument)
{
    struct prudence_domain *domain = argument;

    domain->readers_fence_themselves = 1;
    domain->shared.fenced = 0;
    be_forked();
    if (domain->readers_fence_themselves != domain->shared.fenced)
        return 1;
    domain->readers_fence_themselves = 0;
    domain->shared.fenced = 1;
    be_forked();
    return domain->readers_fence_themselves == domain->shared.fenced ? 42 : 2;
}

TEST(readers_and_drivers_are_of_one_mode)
{
    for (unsigned i = 0; i < 2; i++) {
        assert_child(mode_torn, domains[i]);
    }
}

/* A tick of the only remaining thread ends a phase. */
static bool tick_ends_a_phase(struct prudence_domain *domain)
{
    uint64_t before = gp_phases_ended(domain);

    gp_phases_tick(domain);
    return gp_phases_advance(domain) && gp_phases_ended(domain) == before + 1;
}

static int phases_torn(void *unused)
{
    struct prudence_domain *domain = gp_phases_make("phases");
    uint64_t phase;

    gp_phases_join(domain, false, &phase);
    if (!tick_ends_a_phase(domain) || !tick_ends_a_phase(domain))
        return 1;
    /* it is from before the copy, the sequence from after */
    domain->progress.completed -= 2 * GP_STEP;
    be_forked();
    if (!tick_ends_a_phase(domain) || !tick_ends_a_phase(domain))
        return 2;
    domain->shared.sequence -= 2 * GP_STEP;
    be_forked();
    return tick_ends_a_phase(domain) && tick_ends_a_phase(domain) ? 42 : 3;
}

TEST(phases_go_on)
{
    assert_child(phases_torn, NULL);
}

SUITE(domains[0] = prudence_default_domain(),
      domains[1] = prudence_domain_create("other", PRUDENCE_DOMAIN_MEMB, NULL))
