// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Grace periods: the kernel's RCU through its polled interface. There is one domain.
 *
 * A cookie (gp_poll.h) is requested as soon as it is handed out, because that is when a batch is closed and objects
 * wait for it: a deferral never waits, and no other thread would ask. Requested is the normal grace period that makes
 * the cookie safe, once for all cookies that name it. The request goes by irq_work, because a batch may be closed in
 * a hard interrupt, or with locks held that waking RCU's thread needs; and from there by a tasklet, because
 * start_poll_synchronize_rcu wants interrupts on. A work queue's thread would do if it ran; but on a busy CPU it
 * begins milliseconds later, and for as long no grace period is under way.
 *
 * No request is lost: `wanted` is set before the irq_work is queued, and taken by the thread that asks. A normal
 * grace period that is asked for after the cookie was taken has that number or a higher one.
 *
 * A CPU on which much is deferred hastens its own part of what is under way, if the kernel can (hasten.c). Expedited
 * grace periods disturb every CPU: they are used only when memory is short, or latent memory past its budget
 * (kernel/limits.c).
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/version.h>

#include "gp_kernel.h"

/* A wait looks again so often, and less often the longer it lasts. */
#define PAUSE_MIN_US 50
#define PAUSE_MAX_US 1000
#define LOOKS_AN_ASK 1000

struct prudence_domain {
    struct irq_work irq_work;
    struct tasklet_struct tasklet;
    struct work_struct work;
    unsigned long requested; /* the newest normal grace period that was asked for; atomic */
    unsigned long expedited; /* what came next when an expedited one was asked for last; atomic */
    gp_cookie expired;       /* what outlasted a wait; value 0: none; atomic */
    uint32_t wanted;         /* a normal grace period is to be asked for; atomic */
    uint32_t pushed;         /* ... and to be looked at soon; atomic */
    uint32_t hurry;          /* an expedited one is to be asked for; atomic */
    struct gp_kernel_stats stats;
};

static struct prudence_domain rcu;
struct rcu_gp_oldstate gp_near;

static void ask(struct tasklet_struct *tasklet)
{
    (void)tasklet;
    if (exchange_relaxed(&rcu.wanted, 0u)) {
        start_poll_synchronize_rcu();
        add_relaxed(&rcu.stats.requests, 1);
    }
    if (exchange_relaxed(&rcu.pushed, 0u))
        rcu_force_quiescent_state();
}

/* To expedite, or where tasklets are run by a thread as well, and by no urgent one. */
static void ask_in_thread(struct work_struct *work)
{
    (void)work;
    ask(NULL);
    if (!exchange_relaxed(&rcu.hurry, 0u))
        return;
    start_poll_synchronize_rcu_expedited();
    add_relaxed(&rcu.stats.expedited, 1);
    add_relaxed(&rcu.stats.requests, 1);
}

static void ask_in_interrupt(struct irq_work *irq_work)
{
    (void)irq_work;
    if (IS_ENABLED(CONFIG_PREEMPT_RT) || load_relaxed(&rcu.hurry))
        queue_work(system_highpri_wq, &rcu.work);
    if (!IS_ENABLED(CONFIG_PREEMPT_RT) && (load_relaxed(&rcu.wanted) || load_relaxed(&rcu.pushed)))
        tasklet_hi_schedule(&rcu.tasklet);
}

/* ----------------------------------------------------------------------------------------- cookies */

/* The kernel's rcu_seq_snap: the number of the first grace period that begins after now, from that of the newest. Its
 * two lowest bits are a state, not 0 while that one is under way. */
static unsigned long next_number(unsigned long newest)
{
    return (newest + 7) & ~3ul;
}

/*
 * The grace periods, of either kind, that begin after this; with a full fence before. Up to 6.14 the kernel's own
 * function looks at a number of normal ones (rnp->gp_seq) that is written when one has begun already. In between it
 * names that one, which does not wait for a CPU that was away and has come online since. Here it is the number that
 * is written first, as in the kernel from 6.15 on ("rcu: Fix get_state_synchronize_rcu_full() GP-start detection").
 */
static void take_state(struct rcu_gp_oldstate *state)
{
    if (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)) {
        get_state_synchronize_rcu_full(state);
        return;
    }
    smp_mb(); /* what was unlinked before is before these grace periods */
    state->rgos_norm = next_number(rcu_get_gp_seq());
    state->rgos_exp = next_number(rcu_exp_batches_completed());
}

/* Reached, or further ahead than a number can be that is not over: what take_state hands out is 8 ahead at most. */
#define AHEAD_MAX 64

static bool is_over(unsigned long newest, unsigned long number)
{
    return number - newest - 1 >= AHEAD_MAX;
}

/*
 * Up to 6.14 both numbers are compared with those that take_state reads. The kernel's own function looks at
 * rnp->gp_seq there, from which ours is 8 ahead while a grace period begins, and takes a number 8 ahead for one that
 * has been over for long: objects were handed out at once. (6.15 changed both functions.)
 */
bool gp_kernel_is_over(const struct rcu_gp_oldstate *state)
{
    if (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0))
        return poll_state_synchronize_rcu_full((struct rcu_gp_oldstate *)state);
    if (!is_over(rcu_get_gp_seq(), state->rgos_norm) &&
        !is_over(rcu_exp_batches_completed(), state->rgos_exp))
        return false;
    smp_mb(); /* the end of the grace period, which writes the number behind a fence, is before what follows */
    return true;
}

/* Others may store an older number at the same time: as near. */
static void stay_near(unsigned long *near, unsigned long number)
{
    if (unlikely(number - load_relaxed(near) > 1ul << 30))
        store_relaxed(near, number);
}

static bool is_requested(unsigned long normal, unsigned long newest)
{
    return (long)(normal - newest) <= 0;
}

/* Asks for the normal grace period, once. Between two that are asked for here, few expedited ones end. */
static noinline void request(const struct rcu_gp_oldstate *state)
{
    unsigned long newest = load_relaxed(&rcu.requested);

    stay_near(&gp_near.rgos_norm, state->rgos_norm);
    stay_near(&gp_near.rgos_exp, state->rgos_exp);
    do
        if (is_requested(state->rgos_norm, newest))
            return;
    while (!compare_exchange(&rcu.requested, &newest, state->rgos_norm));
    add_relaxed(&rcu.stats.cookies, 1);
    store_relaxed(&rcu.wanted, 1u);
    irq_work_queue(&rcu.irq_work); /* a full fence, or one that was queued has not run yet */
}

gp_cookie gp_snapshot(struct prudence_domain *domain)
{
    struct rcu_gp_oldstate state;

    (void)domain;
    take_state(&state);
    if (unlikely(!is_requested(state.rgos_norm, load_relaxed(&rcu.requested))))
        request(&state);
    return (gp_cookie){(uint64_t)(uint32_t)state.rgos_exp << 32 | (uint32_t)state.rgos_norm};
}

/* It was, when it was handed out. */
void gp_request(struct prudence_domain *domain, gp_cookie cookie)
{
    (void)domain;
    (void)cookie;
}

/* The kernel drives its grace periods itself. */
void gp_drive(struct prudence_domain *domain)
{
    (void)domain;
}

bool gp_advance(struct prudence_domain *domain, gp_cookie cookie)
{
    (void)domain;
    (void)cookie;
    return false;
}

void gp_push(void)
{
    store_relaxed(&rcu.pushed, 1u);
    irq_work_queue(&rcu.irq_work);
}

/* What comes next, of either kind: the kernel may turn expedited ones into normal ones (rcu_normal; always on
 * PREEMPT_RT once it has booted), and then the number of expedited ones stands still. */
static unsigned long next_of_all(void)
{
    struct rcu_gp_oldstate state;

    take_state(&state);
    return state.rgos_norm + state.rgos_exp;
}

/* Not twice for the same: the next one has not begun yet. */
void gp_expedite(void)
{
    unsigned long next = next_of_all();

    if (load_relaxed(&rcu.expedited) == next || exchange_relaxed(&rcu.expedited, next) == next)
        return;
    store_relaxed(&rcu.hurry, 1u);
    irq_work_queue(&rcu.irq_work);
}

/* Perhaps no other thread asks for what is waited for here, so it is asked for again now and then. */
static void ask_to_wait(struct prudence_domain *domain)
{
    start_poll_synchronize_rcu_expedited();
    add_relaxed(&domain->stats.expedited, 1);
    add_relaxed(&domain->stats.requests, 1);
}

bool gp_wait(struct prudence_domain *domain, gp_cookie cookie, uint64_t deadline)
{
    unsigned pause = PAUSE_MIN_US, looks = 0;

    add_relaxed(&domain->stats.waits, 1);
    while (!gp_poll(domain, cookie)) {
        if (deadline && looks && os_clock_ns() >= deadline)
            return false;
        if (looks++ % LOOKS_AN_ASK == 0)
            ask_to_wait(domain);
        usleep_range(pause, 2 * pause);
        pause = min(2 * pause, (unsigned)PAUSE_MAX_US);
    }
    return true;
}

/* Flags say whether an implicit wait is allowed (os_may_block); this is for a caller that has asked and should not
 * wait. */
bool gp_may_wait(void)
{
    return in_task() && !irqs_disabled() && !rcu_preempt_depth();
}

bool gp_worth_waiting(struct prudence_domain *domain)
{
    gp_cookie expired = {load_relaxed(&domain->expired.value)};

    return !expired.value || gp_poll(domain, expired);
}

void gp_note_expired(struct prudence_domain *domain)
{
    add_relaxed(&domain->stats.expiries, 1);
    store_relaxed(&domain->expired.value, gp_snapshot(domain).value);
}

/* It takes milliseconds, so latent caches are to grow until they hold what is deferred in that time. */
bool gp_is_cheap(const struct prudence_domain *domain)
{
    (void)domain;
    return false;
}

struct prudence_domain *gp_default_domain(void)
{
    return &rcu;
}

/* The kernel's RCU outlives every cache. */
void gp_domain_get(struct prudence_domain *domain)
{
    (void)domain;
}

void gp_domain_put(struct prudence_domain *domain)
{
    (void)domain;
}

unsigned gp_domains_visit(struct prudence_domain **domains, unsigned count, uint64_t *after)
{
    if (!count || *after)
        return 0;
    *after = 1;
    domains[0] = &rcu;
    return 1;
}

void gp_domain_leave(struct prudence_domain *domain)
{
    (void)domain;
}

void gp_kernel_stats(struct gp_kernel_stats *stats)
{
    *stats = (struct gp_kernel_stats){
        .cookies = load_relaxed(&rcu.stats.cookies),
        .requests = load_relaxed(&rcu.stats.requests),
        .expedited = load_relaxed(&rcu.stats.expedited),
        .waits = load_relaxed(&rcu.stats.waits),
        .expiries = load_relaxed(&rcu.stats.expiries),
        .hastened = gp_hastened(),
    };
}

void gp_kernel_start(void)
{
    os_irq_work_init(&rcu.irq_work, ask_in_interrupt);
    tasklet_setup(&rcu.tasklet, ask);
    INIT_WORK(&rcu.work, ask_in_thread);
    gp_hasten_start();
    take_state(&gp_near);
    rcu.requested = gp_near.rgos_norm - 1; /* older than any to come */
    rcu.expedited = next_of_all() - 1;
}

/* Nobody takes cookies any more. */
void gp_kernel_stop(void)
{
    irq_work_sync(&rcu.irq_work);
    tasklet_kill(&rcu.tasklet);
    flush_work(&rcu.work);
}
