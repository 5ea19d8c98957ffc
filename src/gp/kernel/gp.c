// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Grace periods: the kernel's RCU through its polled interface. There is one domain.
 *
 * A cookie is requested as soon as it is handed out, for it is handed out when a batch is closed, that
 * is when objects wait for it: a deferral never waits, and nobody else would ask. That costs one
 * irq_work for each grace period of the system, however many batches share it: the first who is given
 * a cookie asks for it. By irq_work, since a batch may be closed in a hard interrupt, or with locks held
 * that waking RCU's thread needs; and from there by a tasklet, since start_poll_synchronize_rcu wants
 * interrupts on. A work queue's thread would be as good, if it ran: on a busy CPU it begins milliseconds
 * later, and as long no grace period is under way.
 *
 * Expedited grace periods disturb every CPU: only when memory is short, or latent memory past its
 * budget (kernel/limits.c).
 */
#include <linux/delay.h>
#include <linux/interrupt.h>

#include "gp_kernel.h"

/* A wait looks again so often, and less often the longer it lasts. */
#define PAUSE_MIN_US 50
#define PAUSE_MAX_US 1000

struct prudence_domain {
    struct irq_work irq_work;
    struct tasklet_struct tasklet;
    struct work_struct work;
    uint64_t requested; /* the newest cookie that was asked for; atomic */
    uint64_t expedited; /* the cookie that was expedited last; atomic */
    uint64_t expired;   /* the cookie that outlasted a wait; 0: none */
    uint32_t hurry;     /* the work is to expedite; atomic */
    struct gp_kernel_stats stats;
};

static struct prudence_domain rcu;

static void ask(struct tasklet_struct *tasklet)
{
    (void)tasklet;
    start_poll_synchronize_rcu();
    add_relaxed(&rcu.stats.requests, 1);
}

/* To expedite, or where tasklets are run by a thread as well, and by no urgent one. */
static void ask_in_thread(struct work_struct *work)
{
    (void)work;
    if (exchange_relaxed(&rcu.hurry, 0u)) {
        add_relaxed(&rcu.stats.expedited, 1);
        start_poll_synchronize_rcu_expedited();
        add_relaxed(&rcu.stats.requests, 1);
    } else {
        ask(NULL);
    }
}

static void ask_in_interrupt(struct irq_work *irq_work)
{
    (void)irq_work;
    if (IS_ENABLED(CONFIG_PREEMPT_RT) || load_relaxed(&rcu.hurry))
        queue_work(system_highpri_wq, &rcu.work);
    else
        tasklet_hi_schedule(&rcu.tasklet);
}

/* Cookies are numbers that grow, and wrap. */
void gp_request(struct prudence_domain *domain, gp_cookie cookie)
{
    uint64_t newest = load_relaxed(&domain->requested);

    do
        if ((int64_t)(cookie - newest) <= 0)
            return;
    while (!compare_exchange(&domain->requested, &newest, cookie));
    add_relaxed(&domain->stats.cookies, 1);
    irq_work_queue(&domain->irq_work);
}

gp_cookie gp_snapshot(struct prudence_domain *domain)
{
    gp_cookie cookie = get_state_synchronize_rcu(); /* begins with a full fence */

    gp_request(domain, cookie);
    return cookie;
}

/* The kernel drives its grace periods itself. */
void gp_drive(struct prudence_domain *domain)
{
    (void)domain;
}

bool gp_drive_shared(struct prudence_domain *domain)
{
    (void)domain;
    return false;
}

void gp_expedite(void)
{
    uint64_t cookie = load_relaxed(&rcu.requested);

    if (load_relaxed(&rcu.expedited) == cookie ||
        exchange_relaxed(&rcu.expedited, cookie) == cookie)
        return;
    store_relaxed(&rcu.hurry, 1u);
    irq_work_queue(&rcu.irq_work);
}

bool gp_wait(struct prudence_domain *domain, gp_cookie cookie, uint64_t deadline)
{
    unsigned pause = PAUSE_MIN_US;

    add_relaxed(&domain->stats.waits, 1);
    if (gp_poll(domain, cookie))
        return true;
    start_poll_synchronize_rcu_expedited();
    add_relaxed(&domain->stats.expedited, 1);
    while (!gp_poll(domain, cookie)) {
        if (deadline && os_clock_ns() >= deadline)
            return false;
        usleep_range(pause, 2 * pause);
        pause = min(2 * pause, (unsigned)PAUSE_MAX_US);
    }
    return true;
}

/* Implicit waits are asked for by flags (os_may_block); this is for who has asked and should not. */
bool gp_may_wait(void)
{
    return in_task() && !irqs_disabled() && !rcu_preempt_depth();
}

bool gp_worth_waiting(struct prudence_domain *domain)
{
    uint64_t expired = load_relaxed(&domain->expired);

    return !expired || gp_poll(domain, expired);
}

void gp_note_expired(struct prudence_domain *domain)
{
    add_relaxed(&domain->stats.expiries, 1);
    store_relaxed(&domain->expired, get_state_synchronize_rcu());
}

/* It takes milliseconds: latent caches are to grow until they hold what is deferred meanwhile. */
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
    };
}

void gp_kernel_start(void)
{
    os_irq_work_init(&rcu.irq_work, ask_in_interrupt);
    tasklet_setup(&rcu.tasklet, ask);
    INIT_WORK(&rcu.work, ask_in_thread);
    store_relaxed(&rcu.requested, get_state_synchronize_rcu() - 1); /* older than any to come */
}

/* Nobody takes cookies any more. */
void gp_kernel_stop(void)
{
    irq_work_sync(&rcu.irq_work);
    tasklet_kill(&rcu.tasklet);
    flush_work(&rcu.work);
}
