/* SPDX-License-Identifier: MIT */
/*
 * Reports garbage past the limit, and the readers that keep it, on standard error. stall.c reports
 * a reader that stays after stall_timeout. Garbage past a limit means that memory grows now, so
 * this report is made at once, and names the blocking readers however short they have been there.
 * While the garbage stays past the limit it is repeated, after pauses that double.
 */
#include <errno.h>

#include "base/pace.h"
#include "gp/user/domain.h"
#include "gp/user/may_wait.h"
#include "gp/user/slots.h"
#include "gp/user/stall.h"

#define PAUSE_FIRST_NS UINT64_C(10000000000) /* between two reports */
#define PAUSE_MOST_NS  UINT64_C(640000000000)
#define NAMED_MAX      4 /* readers of a domain */

static struct growing_pauses pauses;

/* Returns the time since a driver first found the section blocking, or 0 if none has. */
static uint64_t age_of(const struct reader_slot *slot, uint64_t section)
{
    int64_t age = (int64_t)(os_clock_ns() - load_relaxed(&slot->stall_since));

    return load_relaxed(&slot->stall_word) == section && age > 0 ? (uint64_t)age : 0;
}

static void print_trace(int thread)
{
    void *frames[OS_TRACE_MAX];
    unsigned count;

    if (!load_relaxed(&gp_stall_trace))
        return;
    count = os_thread_trace(thread, frames, OS_TRACE_MAX, STALL_TRACE_PATIENCE_NS);
    os_report("  it is now at:");
    os_trace_print(frames, count);
}

static void name_reader(const struct prudence_domain *domain, const struct reader_slot *slot,
                        uint64_t section)
{
    int thread = load_relaxed(&slot->thread);
    char name[OS_THREAD_NAME_MAX];

    os_thread_name(thread, name);
    os_report(domain->kind == PRUDENCE_DOMAIN_QSBR
                  ? "  thread '%s' (tid %d) has announced no quiescent state in domain '%s', "
                    "blocking for %llu ms: it should do so more often"
                  : "  thread '%s' (tid %d) is inside a read-side critical section of domain '%s', "
                    "blocking for %llu ms",
              name, thread, domain->name, (unsigned long long)(age_of(slot, section) / 1000000));
    print_trace(thread);
}

/* Names the readers that hold up the next grace period; returns how many there are. */
static unsigned name_readers(struct prudence_domain *domain)
{
    uint64_t completed = load_acquire(&domain->progress.completed);
    struct reader_chunk *chunk;
    struct reader_slot *slot;
    unsigned found = 0;

    for_each_slot(chunk, slot, domain)
    {
        uint64_t word = load_relaxed(&slot->reader.word), section = word & ~PRUDENCE_NESTING_MASK;

        if (!word || sequence_before(completed, section))
            continue;
        if (found++ < NAMED_MAX)
            name_reader(domain, slot, section);
    }
    if (found > NAMED_MAX)
        os_report("  and %u more threads in domain '%s'", found - NAMED_MAX, domain->name);
    return found;
}

/* Explains readers of another library, where only the calling thread is known. */
static void explain_external(const struct prudence_domain *domain)
{
    os_report(
        "  a grace period of domain '%s' is under way; its readers belong to another library, "
        "which does not name them%s: they should report quiescent states, or leave their sections, "
        "more often",
        domain->name, may_wait_is_inside_elsewhere(domain) ? ", but this thread is one" : "");
}

/* Ignores sets, because their members are visited as well. */
static void overrun_explain(struct prudence_domain *domain)
{
    bool is_under_way = sequence_before(load_acquire(&domain->progress.completed),
                                        load_relaxed(&domain->shared.sequence));

    if (domain->phases || name_readers(domain) || !is_under_way)
        return;
    if (domain->kind == PRUDENCE_DOMAIN_EXTERNAL)
        explain_external(domain);
    else if (domain->kind == PRUDENCE_DOMAIN_SRCU)
        os_report("  sections of prudence_srcu_down_read are open in domain '%s'", domain->name);
}

void gp_overrun(const char *option, uint64_t bytes, uint64_t limit)
{
    int saved_errno = errno;
    struct prudence_domain *domain;
    uint64_t after = 0;

    if (!is_time_after_pause(&pauses, os_clock_ns(), PAUSE_FIRST_NS, PAUSE_MOST_NS))
        return;
    os_report(
        "%s: %llu KB wait for readers, more than the limit of %llu KB, and this thread could not "
        "be held back. Let the readers below be done sooner, or raise %s",
        option, (unsigned long long)max_size((bytes + 1023) >> 10, (limit >> 10) + 1),
        (unsigned long long)(limit >> 10), option); /* by now it may be less */
    while (domains_visit(&domain, 1, &after, false)) {
        overrun_explain(domain);
        gp_domain_leave(domain);
    }
    errno = saved_errno;
}
