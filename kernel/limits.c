// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Keeps latent memory small. Past the budget, grace periods are pushed and expedited. Past the
 * limit, allocations that may sleep wait for one before they grow a cache (slab_growth_limit). Both
 * bounds are shares of memory unless set.
 */
#include "base/pace.h"
#include "gp_kernel.h"
#include "module.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"

static unsigned long latent_budget_kb;
module_param(latent_budget_kb, ulong, 0644);
MODULE_PARM_DESC(
    latent_budget_kb,
    "latent memory in KB beyond which grace periods are expedited (0: 1/64 of memory)");

/* RCU reports a stall after 21 s; allocations must not be held back that long. */
static unsigned long latent_limit_kb, wait_max_ms = 10000;

static uint64_t limit(void)
{
    return latent_limit_kb ? (uint64_t)latent_limit_kb << 10
                           : (uint64_t)totalram_pages() << PAGE_SHIFT >> 4;
}

/* Also caps the limit at a quarter of the available memory, because others may have taken most of
 * it. */
static void limits_apply(void)
{
    uint64_t available = (uint64_t)max(si_mem_available(), 1l) << PAGE_SHIFT;

    store_relaxed(&slab_growth_limit, min(limit(), available / 4));
    store_relaxed(&slab_wait_max, (uint64_t)wait_max_ms * NSEC_PER_MSEC);
}

/* Like module_param(ulong), but takes effect at once. */
static int set_limit(const char *text, const struct kernel_param *param)
{
    unsigned long value;
    int error = kstrtoul(text, 0, &value);

    if (!error && value > S64_MAX / NSEC_PER_MSEC) /* keeps the product below in range */
        error = -ERANGE;
    if (error)
        return error;
    *(unsigned long *)param->arg = value;
    limits_apply();
    return 0;
}

static const struct kernel_param_ops limit_ops = {.set = set_limit, .get = param_get_ulong};
module_param_cb(latent_limit_kb, &limit_ops, &latent_limit_kb, 0644);
MODULE_PARM_DESC(latent_limit_kb,
                 "latent memory in KB beyond which allocations that may sleep wait for a grace "
                 "period before their cache grows (0: 1/16 of memory; never more than a quarter of "
                 "available memory)");
module_param_cb(wait_max_ms, &limit_ops, &wait_max_ms, 0644);
MODULE_PARM_DESC(wait_max_ms, "maximal ms that an allocation waits for a grace period (10000)");

/*
 * An expedited grace period interrupts each CPU. The whole machine takes no more than a thousand
 * such interrupts a second; in between, the normal grace period is pushed.
 */
#define HURRY_NS NSEC_PER_MSEC

static uint64_t budget(void)
{
    unsigned long kb = READ_ONCE(latent_budget_kb);

    return kb ? (uint64_t)kb << 10 : (uint64_t)totalram_pages() << PAGE_SHIFT >> 6;
}

/* Acts at most once in HURRY_NS, because the latent memory may have been safe for long and lie in
 * caches that went quiet. */
static void keep_to_budget(void)
{
    static uint64_t hurried_at, expedited_at; /* ns */
    uint64_t now;

    if (limit_used() <= budget())
        return;
    now = os_clock_ns();
    if (!is_time_again(&hurried_at, now, HURRY_NS))
        return;
    if (now - load_relaxed(&expedited_at) <= num_online_cpus() * HURRY_NS) {
        gp_push();
        return;
    }
    store_relaxed(&expedited_at, now);
    gp_expedite();
}

void limits_look(void)
{
    limits_apply();
    keep_to_budget();
}
