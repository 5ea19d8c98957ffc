/* SPDX-License-Identifier: MIT */
/*
 * Connects callbacks and the allocator: the functions of <prudence/call.h>.
 *
 * A queued head in memory of the allocator shows which object is about to be freed, although only
 * the callback knows how. So the object's slab counts the object as leaving until the callback
 * runs. Refills leave alone slabs whose live objects are mostly leaving, as they do with latent
 * objects (ADR 15).
 *
 * Bounded in bytes: an object counts as its size in the slab, a head elsewhere as FOREIGN_BYTES. A
 * thread that finds more than the option call_limit waiting is held back after queueing its
 * callback. This is an implicit wait, so the rules of implicit waits apply (ADR 6).
 */
#include <errno.h>

#include "fork_part.h"
#include "gp/user/domain.h"
#include "gp/user/may_wait.h"
#include "guard/check.h"
#include "process.h"
#include "slab/reclaim/wait.h"
#include "toolkit/callbacks/call.h"
#include "toolkit/callbacks/callback_life.h"
#include "toolkit/callbacks/callback_queue.h"
#include "toolkit/callbacks/callback_wait.h"
#include "toolkit/callbacks/callback_worker.h"
#include "toolkit/callbacks/check_reader.h"
#include "toolkit/callbacks/destruct.h"
#include "toolkit/callbacks/may_wait.h"
#include "toolkit/domains/head_set.h"

#define FOREIGN_BYTES ((size_t)64)
#define RUNNER_NAP_NS 1000 /* between tries to become the runner of a queue without callbacks */

uint64_t call_limit = (uint64_t)64 << 20;

/* ------------------------------------------------------------------------ heads that are queued */

static struct os_lock set_lock = OS_LOCK_INIT(OS_RANK_CALL_SET);
static struct head_set queued; /* with check=1; changed under set_lock */

static bool note_queued(const struct prudence_head *head)
{
    bool is_new;

    os_lock_take(&set_lock);
    is_new = head_set_add(&queued, head);
    os_lock_release(&set_lock);
    return is_new;
}

static void forget_queued(const struct prudence_head *head)
{
    os_lock_take(&set_lock);
    head_set_remove(&queued, head);
    os_lock_release(&set_lock);
}

static void call_fork_prepare(void)
{
    os_lock_take_for_fork(&set_lock);
}

static void call_fork_done(void)
{
    os_lock_release_from_fork(&set_lock);
}

const struct fork_part call_fork_part = {.order = FORK_HEADS,
                                         .name = "queued heads",
                                         .prepare = call_fork_prepare,
                                         .done = call_fork_done};

/* ------------------------------------------------------------------------- what heads stand for */

static size_t call_weigh(const struct prudence_head *head)
{
    const struct slab *slab = os_page_owner(head);

    return slab ? slab_object_bytes(slab) : FOREIGN_BYTES;
}

static void call_leave(const struct prudence_head *head)
{
    struct slab *slab = os_page_owner(head);

    if (slab)
        sub_relaxed(&slab->leaving, 1);
    if (unlikely(load_relaxed(&queued.used)))
        forget_queued(head);
}

const struct option callback_options[] = {
    {ROW_BYTES("call_limit", OPTION_LIMIT), .word = &call_limit},
    {.name = NULL},
};

COLD void call_start(void)
{
    callbacks_weigh = call_weigh;
    callbacks_leave = call_leave;
}

/* ----------------------------------------------------------------------------------- queueing */

/* Holds the caller back if allowed, because too much waits. */
static void throttle(struct callback_queue *queue, uint64_t limit)
{
    if (callback_here() || !callback_wait_is_worthwhile(queue) || !gp_may_wait()) {
        add_relaxed(&call_counts.overruns, 1);
        gp_overrun("call_limit", callback_queue_bytes(queue), limit);
        return;
    }
    add_relaxed(&call_counts.waits, 1);
    if (!callback_wait_for_room(queue, limit, os_clock_ns() + load_relaxed(&slab_wait_max)))
        add_relaxed(&call_counts.expiries, 1);
}

/* Called periodically: checks whether too many bytes wait. */
static void hold_back(struct callback_queue *queue)
{
    uint64_t limit = load_relaxed(&call_limit);

    if (limit && !callback_here() && callback_wait_keep_pace(queue))
        add_relaxed(&call_counts.waits, 1);
    if (limit && callback_queue_bytes(queue) > limit)
        throttle(queue, limit);
}

void call_push(struct callback_queue *queue, struct prudence_head *head,
               void (*func)(struct prudence_head *head), const char *what)
{
    int saved_errno = errno;
    struct slab *slab;

    if (unlikely(!head || !func))
        os_panic("%s: the %s is NULL", what, head ? "function" : "head");
    if (unlikely(check_wanted)) {
        if (!note_queued(head))
            os_panic("%s: head %p is queued already", what, (void *)head);
        check_reader_domain(queue->domain, head, what);
    }
    slab = os_page_owner(head);
    if (slab)
        add_relaxed(&slab->leaving, 1);
    store_relaxed(&head->func, func);
    if (unlikely(callback_push(queue, head, slab ? slab_object_bytes(slab) : FOREIGN_BYTES)))
        hold_back(queue);
    errno = saved_errno;
}

void prudence_call(struct prudence_head *head, void (*func)(struct prudence_head *head))
{
    process_start();
    call_push(callback_queue_of(&prudence_default), head, func, "prudence_call");
}

void prudence_domain_call(struct prudence_domain *domain, struct prudence_head *head,
                          void (*func)(struct prudence_head *head))
{
    process_start();
    if (unlikely(!domain))
        os_panic("prudence_domain_call: the domain is NULL");
    gp_domain_check(domain, "prudence_domain_call", __builtin_return_address(0));
    call_push(callback_queue_of(domain), head, func, "prudence_domain_call");
}

/* Only the runner touches `around`, and only while it is busy: a child never finds half of it. A
 * worker that finds nothing to run is the runner for a moment only, but may lack a CPU then, which
 * may be this thread's. In a handler of fork a runner may wait for the end of the fork, or exist in
 * the parent only, so this waits for none there. */
int prudence_domain_call_around(struct prudence_domain *domain, unsigned most,
                                void (*begin)(void *argument), void (*end)(void *argument),
                                void *argument)
{
    struct callback_queue *queue;

    process_start();
    if (!domain)
        return EINVAL;
    gp_domain_check(domain, "prudence_domain_call_around", __builtin_return_address(0));
    if (os_lock_forking)
        return EBUSY;
    queue = callback_queue_of(domain);
    for (;;) {
        if (callback_here() || callback_queue_waits(queue))
            return EBUSY;
        if (callback_queue_become_runner(queue))
            break;
        os_sleep_ns(RUNNER_NAP_NS);
    }
    callback_queue_become_busy(queue);
    queue->around = (struct callback_around){begin, end, argument, most};
    callback_queue_become_idle(queue);
    callback_queue_end_running(queue);
    return 0;
}

/* ------------------------------------------------------------------------------------ barriers */

static int barrier(struct prudence_domain *domain, uint64_t deadline, const char *what,
                   void *caller)
{
    struct wait_request request = {.what = what,
                                   .of = "for domain",
                                   .name = domain->name,
                                   .waits_for = domain,
                                   .leaves = domain,
                                   .caller = caller,
                                   .for_callbacks = true};
    int error = may_wait_for_code(&request);
    uint64_t was_online;

    if (error)
        return error;
    was_online = gp_leave_to_wait(domain);
    if (!callback_barrier_until(callback_queue_of(domain), deadline))
        error = ETIMEDOUT;
    gp_return_from_wait(domain, was_online);
    return error;
}

int prudence_barrier(void)
{
    process_start();
    return barrier(&prudence_default, 0, "prudence_barrier", __builtin_return_address(0));
}

int prudence_barrier_nested(void)
{
    struct callback_queue *queue;
    int error = 0;

    process_start();
    queue = callback_queue_of(&prudence_default);
    if (os_lock_forking)
        return EBUSY;
    if (destruct_here() || callback_here() || !gp_may_wait())
        return EDEADLK;
    for (unsigned round = 0; !error && round < 100 && callback_queue_waits(queue); round++)
        error =
            barrier(&prudence_default, 0, "prudence_barrier_nested", __builtin_return_address(0));
    return error;
}

int prudence_domain_barrier(struct prudence_domain *domain)
{
    process_start();
    if (!domain)
        return EINVAL;
    gp_domain_check(domain, "prudence_domain_barrier", __builtin_return_address(0));
    return barrier(domain, 0, "prudence_domain_barrier", __builtin_return_address(0));
}

int prudence_domain_barrier_timed(struct prudence_domain *domain, uint64_t nanoseconds)
{
    static const char what[] = "prudence_domain_barrier_timed";

    process_start();
    if (!domain)
        return EINVAL;
    gp_domain_check(domain, what, __builtin_return_address(0));
    return barrier(domain, os_clock_after(nanoseconds), what, __builtin_return_address(0));
}
