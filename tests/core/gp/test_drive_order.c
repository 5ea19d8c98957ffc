/* SPDX-License-Identifier: MIT */
/*
 * A driver loads the goal, then the mode, then makes the barrier. The test steps through it and
 * makes another thread's stores before each instruction: a grace period that starts after
 * the barrier, or whose readers have stopped fencing, is not completed without a barrier of its
 * own.
 *
 * ctest: needs steps
 */
#define _GNU_SOURCE

#include <linux/membarrier.h>
#include <stdio.h>

#include <prudence/prudence.h>

#include "gp/user/domain.h"
#include "support/step.h"
#include "support/suite.h"

/* Acts before each instruction of the release build; checks and sanitizers multiply the
 * instructions. */
#ifdef PRUDENCE_DEBUG
#define STRIDE 5
#else
#define STRIDE 1
#endif

static struct prudence_domain *domain;
static unsigned step, act_at;
static bool to_free, acted, barrier_next;
static unsigned barriers_since;
static gp_cookie late;

/* Before instruction `act_at`, stops readers' fences (if `to_free`), and starts a grace period. */
static void start_another(const greg_t *registers)
{
    barriers_since += acted && barrier_next;
    barrier_next = step_is_at_call(registers, SYS_membarrier) &&
                   registers[REG_RDI] == MEMBARRIER_CMD_PRIVATE_EXPEDITED;
    if (step++ != act_at)
        return;
    acted = true;
    if (to_free) {
        store_release(&domain->readers_fence_themselves, 0u);
        store_release(&domain->shared.fenced, 0u);
    }
    late = gp_snapshot(domain);
    gp_request(domain, late);
}

static void drive(void *unused)
{
    gp_drive(domain);
}

static void expect_a_barrier_for_each(bool from_fenced)
{
    unsigned completed = 0, left = 0;

    for (act_at = 0, acted = true; acted; act_at += STRIDE) {
        store_release(&domain->readers_fence_themselves, (uint32_t)from_fenced);
        store_release(&domain->shared.fenced, (uint32_t)from_fenced);
        gp_request(domain, gp_snapshot(domain));
        to_free = from_fenced;
        step = barriers_since = 0;
        acted = barrier_next = false;
        step_through(drive, NULL, start_another);
        if (acted && gp_poll(domain, late)) {
            completed++;
            if (!barriers_since)
                fail_msg("instruction %u: a grace period without its barrier", act_at);
        }
        left += acted && !gp_poll(domain, late);
        while (acted && !gp_poll(domain, late))
            gp_drive(domain);
    }
    print_message("started before %u instructions and covered, before %u and ended\n", completed,
                  left);
    assert_true(completed * STRIDE > 3 && left > 10);
}

TEST(goal_before_barrier)
{
    expect_a_barrier_for_each(false);
}

TEST(goal_before_mode)
{
    expect_a_barrier_for_each(true);
}

int main(void)
{
    if (!os_membarrier_available()) {
        print_message("skipped: no membarrier, one mode\n");
        return 77;
    }
    domain = prudence_domain_create("driven", PRUDENCE_DOMAIN_MEMB, NULL);
    store_relaxed(&domain->choosing, 1u); /* keep the mode fixed */
    return suite_run(NULL, NULL);
}
