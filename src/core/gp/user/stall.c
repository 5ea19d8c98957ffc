/* SPDX-License-Identifier: MIT */
/*
 * Notes readers that are blocking, notifies those that want to know (kick.c), and reports those
 * that stay too long, each section once, to standard error and to the program's
 * hook. A report has the thread's name and id, the time that the section has been blocking of a
 * grace period, and optionally (stall_trace) the thread's trace. Any driver may note or report;
 * races lose only a little of the duration. Readers without a slot are reported once for each grace
 * period that they hold up. Hazard pointers are noted by their scheme, and reported here.
 *
 * Time counts while drivers check. A debugger, a frozen control group or a paused virtual machine
 * may stop the process, and readers cannot end while it is stopped. No clock reports such a
 * pause, but no driver checked in it. So the time between two checks of a section counts only up to
 * GAP_PART of stall_timeout. In a process whose drivers check rarely, a report comes later.
 */
#include <errno.h>
#include <pthread.h>

#include "gp/user/domain.h"
#include "gp/user/kick.h"
#include "gp/user/process_life.h"
#include "gp/user/slots.h"
#include "gp/user/stall.h"

uint64_t gp_stall_timeout = UINT64_C(10000000000);

/* Time of blocking after which a system call is worthwhile to see whether the thread still exists,
 * because the thread may have ended inside a section entered in its last destructor. If no hook
 * watches the thread, or the thread was ending when last read, drivers ask at once. */
#define GONE_AFTER_NS 5000000

/* The most that counts of the time between two checks. */
#define GAP_PART     8
#define GAP_LEAST_NS UINT64_C(100000000) /* a busy machine keeps a waiting driver from its CPU */

bool gp_stall_trace;

COLD void gp_stall_trace_prime(void)
{
    if (load_relaxed(&gp_stall_trace))
        os_thread_trace_start();
}

/* The program's hook, if any, and the argument; guarded by a lock of their own, because they belong
 * together. */
static struct os_lock hook_lock = OS_LOCK_INIT(OS_RANK_STALL);
static prudence_stall_hook hook;
static void *hook_argument;

void prudence_stall_hook_set(prudence_stall_hook function, void *argument)
{
    os_lock_take(&hook_lock);
    hook = function;
    hook_argument = argument;
    os_lock_release(&hook_lock);
}

void stall_fork_prepare(void)
{
    os_lock_take_for_fork(&hook_lock);
}

void stall_fork_done(void)
{
    os_lock_release_from_fork(&hook_lock);
}

static void call_hook(const struct prudence_stall *stall)
{
    prudence_stall_hook function;
    void *argument;

    os_lock_take(&hook_lock);
    function = hook;
    argument = hook_argument;
    os_lock_release(&hook_lock);
    os_foreign_call("the hook for stalls");
    if (function)
        function(stall, argument);
}

/* Reports readers without a slot: of an external domain, or sections handed between threads. */
static void report_nameless(const struct prudence_stall *stall,
                            const struct prudence_domain *domain)
{
    os_report("stall: a grace period of domain '%s' has not ended for %llu ms (%s)", stall->domain,
              (unsigned long long)(stall->nanoseconds / 1000000),
              domain->kind == PRUDENCE_DOMAIN_SRCU ? "sections of prudence_srcu_down_read are open"
                                                   : "its readers belong to another library");
}

static void report_thread(const struct prudence_stall *stall)
{
    os_report(
        "stall: thread '%s' (tid %d) has kept a grace period of domain '%s' from ending for "
        "%llu ms",
        stall->thread_name, stall->thread, stall->domain,
        (unsigned long long)(stall->nanoseconds / 1000000));
}

static void report_hazard(const struct prudence_stall *stall)
{
    const unsigned long long ms = stall->nanoseconds / 1000000;

    if (stall->thread)
        os_report(
            "stall: a hazard pointer of thread '%s' (tid %d) has named %p, and kept a grace "
            "period of domain '%s' from ending, for %llu ms",
            stall->thread_name, stall->thread, stall->object, stall->domain, ms);
    else
        os_report(
            "stall: a movable hazard pointer has named %p, and kept a grace period of domain "
            "'%s' from ending, for %llu ms",
            stall->object, stall->domain, ms);
}

static void report(const struct prudence_stall *stall, const struct prudence_domain *domain)
{
    if (stall->object)
        report_hazard(stall);
    else if (stall->thread)
        report_thread(stall);
    else
        report_nameless(stall, domain);
    if (!stall->thread || !load_relaxed(&gp_stall_trace))
        return;
    os_report("  that thread is now at:");
    os_trace_print(stall->frames, stall->frame_count);
}

void stall_report(struct prudence_domain *domain, int thread, const void *object, uint64_t stayed)
{
    struct prudence_stall stall = {.size = sizeof stall,
                                   .domain = domain->name,
                                   .thread = thread,
                                   .nanoseconds = stayed,
                                   .object = object};
    void *frames[OS_TRACE_MAX];
    char name[OS_THREAD_NAME_MAX] = "";
    int cancelable, saved_errno = errno;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable);
    if (stall.thread)
        os_thread_name(stall.thread, name);
    stall.thread_name = name;
    stall.frames = frames;
    if (stall.thread && load_relaxed(&gp_stall_trace))
        stall.frame_count =
            os_thread_trace(stall.thread, frames, OS_TRACE_MAX, STALL_TRACE_PATIENCE_NS);
    report(&stall, domain);
    add_relaxed(&domain->stalls, 1);
    os_probe4(stall, domain, domain->name, stall.thread, stayed);
    call_hook(&stall);
    pthread_setcancelstate(cancelable, NULL);
    errno = saved_errno;
}

/* Returns when the section was first noted, or the present time if that has not happened yet. */
uint64_t stall_since(const struct reader_slot *slot)
{
    uint64_t section = load_relaxed(&slot->reader.word) & ~PRUDENCE_NESTING_MASK;

    return load_relaxed(&slot->stall_word) == section ? load_relaxed(&slot->stall_since)
                                                      : os_clock_ns();
}

/* Returns false for slots without a thread, which stand for readers that we cannot name. */
static bool may_have_ended(const struct reader_slot *slot)
{
    return load_relaxed(&slot->thread) && !load_relaxed(&slot->watched);
}

/* Leaves out of the section's stay what is too much of the time since the last check. Among drivers
 * that check at the same time, the one that notes its check subtracts it. A check is noted rarely,
 * because the slot is the reader's. */
static void count_look(struct reader_slot *slot, uint64_t now, uint64_t timeout)
{
    uint64_t looked = load_relaxed(&slot->stall_looked);
    uint64_t most = max_size(timeout / GAP_PART, GAP_LEAST_NS);
    int64_t gap = (int64_t)(now - looked);

    if (gap > (int64_t)most / 4 && compare_exchange(&slot->stall_looked, &looked, now) &&
        gap > (int64_t)most)
        add_relaxed(&slot->stall_since, (uint64_t)gap - most);
}

void stall_note(struct prudence_domain *domain, struct reader_slot *slot, uint64_t word)
{
    uint64_t section = word & ~PRUDENCE_NESTING_MASK;
    uint64_t now, reported, timeout = load_relaxed(&gp_stall_timeout);
    int64_t stayed;

    now = os_clock_ns();
    if (load_relaxed(&slot->stall_word) != section) {
        store_relaxed(&slot->stall_looked, now);
        store_relaxed(&slot->stall_since, now);
        store_relaxed(&slot->stall_word, section);
        if (may_have_ended(slot))
            slots_reap_one(domain, slot, now, 0);
        kick_note(slot, section, 0);
        return;
    }
    count_look(slot, now, timeout);
    reported = load_relaxed(&slot->stall_reported);
    /* negative if noted just after `now` */
    stayed = (int64_t)(now - load_relaxed(&slot->stall_since));
    if ((stayed > GONE_AFTER_NS || may_have_ended(slot)) &&
        slots_reap_one(domain, slot, now, stayed > 0 ? (uint64_t)stayed : 0))
        return;
    kick_note(slot, section, stayed > 0 ? (uint64_t)stayed : 0);
    if (!timeout || reported == section || stayed < (int64_t)timeout)
        return;
    if (compare_exchange(&slot->stall_reported, &reported, section))
        stall_report(domain, slot->thread, NULL, (uint64_t)stayed);
}
