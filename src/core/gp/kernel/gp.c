// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Grace periods: the kernel's RCU through its polled interface. There is one domain.
 *
 * gp_snapshot() requests a cookie (gp_poll.h) when handing it out, because that is when a batch is
 * closed and objects wait: a deferral never waits, and no other thread would ask. The request is
 * for the normal grace period that makes the cookie safe, once for all cookies of that number. The
 * request goes through irq_work, because a batch may be closed in a hard interrupt, or with locks
 * held that waking RCU's thread needs; and from there through a tasklet, because
 * start_poll_synchronize_rcu needs interrupts on. A work queue would do if it ran promptly, but on
 * a busy CPU its thread starts milliseconds later, and no grace period is under way until then.
 *
 * No request is lost, because `wanted` is set before the irq_work is queued, and taken by the
 * thread that asks. A normal grace period requested after the cookie was taken has that number or a
 * higher one.
 *
 * A CPU on which much is deferred hastens its own part of the grace period under way, if the kernel
 * can (hasten.c). Expedited grace periods disturb every CPU, so they are used only when memory is
 * short, or latent memory exceeds latent_budget_kb (kernel/limits.c).
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/version.h>

#include "gp_kernel.h"

/* Pauses between the checks of a wait, growing with the time waited. */
#define PAUSE_MIN_US 50
#define PAUSE_MAX_US 1000
#define LOOKS_AN_ASK 1000

struct prudence_domain {
    struct irq_work irq_work;
    struct tasklet_struct tasklet;
    struct work_struct work;
    unsigned long requested; /* the newest normal grace period requested; atomic */
    /* the next grace period when an expedited one was last requested; atomic */
    unsigned long expedited;
    gp_cookie expired; /* the cookie that outlasted a wait; value 0: none; atomic */
    uint32_t wanted;   /* request a normal grace period; atomic */
    uint32_t pushed;   /* have RCU check soon whether it is over; atomic */
    uint32_t hurry;    /* request an expedited grace period; atomic */
    struct gp_kernel_stats stats;
};

static struct prudence_domain rcu;
struct rcu_gp_seq gp_near;

static void gp_ask(struct tasklet_struct *tasklet)
{
    (void)tasklet;
    if (exchange_relaxed(&rcu.wanted, 0u)) {
        start_poll_synchronize_rcu();
        add_relaxed(&rcu.stats.requests, 1);
    }
    if (exchange_relaxed(&rcu.pushed, 0u))
        rcu_force_quiescent_state();
}

/* Expedites. Does the tasklet's work as well on PREEMPT_RT, where tasklets run in a thread that is
 * not urgent. */
static void ask_in_thread(struct work_struct *work)
{
    (void)work;
    gp_ask(NULL);
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

/* -------------------------------------------------------------------------------------- cookies */

/* Computes the kernel's rcu_seq_snap: the number of the first grace period that begins after now,
 * given the newest number. The two lowest bits are a state, not 0 while that grace period is under
 * way. */
static unsigned long next_number(unsigned long newest)
{
    return (newest + 7) & ~3ul;
}

/*
 * Takes the numbers of the grace periods, of either kind, that begin after this call, with a full
 * fence before. Up to 6.14 the kernel's own function reads a number of normal ones (rnp->gp_seq)
 * that is written after a grace period has begun. In between, the function names that one, which
 * does not wait for a CPU that was away and has come online since. This reads the number that is
 * written first, as the kernel does from 6.15 on ("rcu: Fix get_state_synchronize_rcu_full()
 * GP-start detection").
 */
static void take_state(struct rcu_gp_seq *state)
{
    if (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)) {
        get_state_synchronize_rcu_full(state);
        return;
    }
    smp_mb(); /* orders earlier unlinks before these grace periods */
    state->GP_NORM = next_number(rcu_get_gp_seq());
    state->GP_EXP = next_number(rcu_exp_batches_completed());
}

/* Returns whether the number was reached, or is further ahead than a pending number can be:
 * take_state returns numbers at most 8 ahead. */
#define AHEAD_MAX 64

static bool is_over(unsigned long newest, unsigned long number)
{
    return number - newest - 1 >= AHEAD_MAX;
}

/*
 * Up to 6.14, compares with the numbers that take_state reads. The kernel's own function reads
 * rnp->gp_seq, which our number exceeds by 8 while a grace period begins. The function takes a
 * number 8 ahead for one that has been over for long, so objects were handed out at once. (6.15
 * changed both functions.)
 */
bool gp_kernel_is_over(const struct rcu_gp_seq *state)
{
    if (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0))
        return poll_state_synchronize_rcu_full((struct rcu_gp_seq *)state);
    if (!is_over(rcu_get_gp_seq(), state->GP_NORM) &&
        !is_over(rcu_exp_batches_completed(), state->GP_EXP))
        return false;
    /* orders the grace period, whose number is written after a fence, before the caller's
     * accesses */
    smp_mb();
    return true;
}

/* Another CPU may store an older number at the same time, which is as near. */
static void stay_near(unsigned long *near, unsigned long number)
{
    if (unlikely(number - load_relaxed(near) > 1ul << 30))
        store_relaxed(near, number);
}

static bool is_requested(unsigned long normal, unsigned long newest)
{
    return (long)(normal - newest) <= 0;
}

/* Requests the normal grace period, once. Few expedited ones end between two requests made here. */
static noinline void request(const struct rcu_gp_seq *state)
{
    unsigned long newest = load_relaxed(&rcu.requested);

    stay_near(&gp_near.GP_NORM, state->GP_NORM);
    stay_near(&gp_near.GP_EXP, state->GP_EXP);
    do
        if (is_requested(state->GP_NORM, newest))
            return;
    while (!compare_exchange(&rcu.requested, &newest, state->GP_NORM));
    add_relaxed(&rcu.stats.cookies, 1);
    store_relaxed(&rcu.wanted, 1u);
    irq_work_queue(&rcu.irq_work); /* full fence, or an earlier irq_work is still to run */
}

gp_cookie gp_snapshot(struct prudence_domain *domain)
{
    struct rcu_gp_seq state;

    (void)domain;
    take_state(&state);
    if (unlikely(!is_requested(state.GP_NORM, load_relaxed(&rcu.requested))))
        request(&state);
    return (gp_cookie){(uint64_t)(uint32_t)state.GP_EXP << 32 | (uint32_t)state.GP_NORM};
}

/* Does nothing, because gp_snapshot() requested the grace period. */
void gp_request(struct prudence_domain *domain, gp_cookie cookie)
{
    (void)domain;
    (void)cookie;
}

/* Does nothing, because the kernel drives its grace periods. */
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

/* Returns the sum of both next numbers, because the kernel may turn expedited grace periods into
 * normal ones (rcu_normal; always on PREEMPT_RT after boot), and then the expedited number stands
 * still. */
static unsigned long next_of_all(void)
{
    struct rcu_gp_seq state;

    take_state(&state);
    return state.GP_NORM + state.GP_EXP;
}

/* Asks at most once until the next grace period has begun. */
void gp_expedite(void)
{
    unsigned long next = next_of_all();

    if (load_relaxed(&rcu.expedited) == next || exchange_relaxed(&rcu.expedited, next) == next)
        return;
    store_relaxed(&rcu.hurry, 1u);
    irq_work_queue(&rcu.irq_work);
}

/* Requests an expedited grace period for a waiter, repeatedly, because perhaps no other thread
 * requests the one that the cookie needs. */
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

bool gp_wait_for_sections(struct prudence_domain *domain, gp_cookie cookie, uint64_t deadline,
                          bool is_implicit)
{
    return gp_wait(domain, cookie, deadline);
}

/* Returns whether a wait is possible at all. The allocation's flags say whether an implicit wait is
 * allowed (os_may_block); this guards callers that pass such flags where they should not wait. */
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

/* A grace period takes milliseconds, so latent caches grow until they hold the objects deferred in
 * that time. */
uint64_t gp_cost(const struct prudence_domain *domain)
{
    (void)domain;
    return 10 * NSEC_PER_MSEC;
}

/* ----------------------------------------------------------- what only domains of processes say */

/* No caller pushes grace periods in the kernel. */
bool gp_is_requested(const struct prudence_domain *domain, gp_cookie cookie)
{
    (void)domain, (void)cookie;
    return true;
}

bool gp_polls_objects(const struct prudence_domain *domain)
{
    (void)domain;
    return false;
}

unsigned gp_poll_objects(struct prudence_domain *domain, gp_cookie cookie, void **objects,
                         unsigned count, size_t size, bool *only_names)
{
    (void)domain, (void)cookie, (void)objects, (void)count, (void)size, (void)only_names;
    return 0;
}

bool gp_is_held_up(const struct prudence_domain *domain)
{
    (void)domain;
    return false;
}

bool gp_outstays(struct prudence_domain *domain, uint64_t began, uint64_t nanoseconds)
{
    (void)domain;
    return os_clock_ns() - began >= nanoseconds;
}

/* Deferrals never wait in a kernel, so their limit never rises (ADR 34). */
enum gp_reader_state gp_state_of_reader(struct prudence_domain *domain)
{
    (void)domain;
    return GP_READER_NONE;
}

uint64_t gp_ended(void)
{
    return 0;
}

/* Does nothing: kernel deferrals never wait, and the kernel's stall detector names the readers. */
void gp_overrun(const char *option, uint64_t bytes, uint64_t limit)
{
    (void)option, (void)bytes, (void)limit;
}

/* ------------------------------------------------------------------------------------- domains */

struct prudence_domain *gp_default_domain(void)
{
    return &rcu;
}

/* Does nothing, because the kernel's RCU outlives every cache. */
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
    tasklet_setup(&rcu.tasklet, gp_ask);
    INIT_WORK(&rcu.work, ask_in_thread);
    gp_hasten_start();
    take_state(&gp_near);
    rcu.requested = gp_near.GP_NORM - 1; /* older than any to come */
    rcu.expedited = next_of_all() - 1;
}

/* The caller ensures that no thread takes cookies any more. */
void gp_kernel_stop(void)
{
    irq_work_sync(&rcu.irq_work);
    tasklet_kill(&rcu.tasklet);
    flush_work(&rcu.work);
}
