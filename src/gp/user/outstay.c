/* SPDX-License-Identifier: MIT */
/*
 * How the thread of a reader fares that stays in the way, judged by what the system tells of its CPU time.
 *
 * The question is whether a section has stayed longer than the waiting thread can bear. An implicit wait ends after
 * wait_max, because its caller may hold a lock that the reader wants inside its section: then that section stays for
 * as long as the wait does. But such a reader is blocked, or tries again and again. A reader that merely wants a CPU,
 * and has had none, leaves when it gets one. With many times more threads than CPUs that takes longer than wait_max,
 * and it is waited for; but not forever, because it may never get one.
 *
 * One of the waiting threads looks, every 10 ms, and the others use its answer. What they read may be torn between
 * two looks, or be of another reader that was in the way just before: one of them then gives up 10 ms too early or
 * too late.
 */
#include "base/pace.h"
#include "gp/user/domain.h"

#define AT_MOST 20 /* times what others may stay, without a CPU */

static uint64_t section_of(const struct reader_slot *slot)
{
    return load_relaxed(&slot->reader.word) & ~PRUDENCE_NESTING_MASK;
}

static bool is_about(const struct reader_fares *fares, const struct reader_slot *slot)
{
    return load_relaxed(&fares->reader) == slot &&
           load_relaxed(&fares->section) == section_of(slot);
}

static void note(struct reader_fares *fares, const struct reader_slot *slot, uint64_t had)
{
    store_relaxed(&fares->reader, slot);
    store_relaxed(&fares->section, section_of(slot));
    store_relaxed(&fares->had, had);
}

/* ------------------------------------------------------------------------- a section that has stayed long */

#define LOOK_NS 10000000
#define HAD_NS  20000000 /* enough to leave a section; /proc tells it to 10 ms */

/* Since the first look at the section. */
static bool fares_badly(struct reader_fares *fares, const struct reader_slot *slot)
{
    uint64_t had;
    bool wants;

    if (!os_thread_wants_cpu(load_relaxed(&slot->thread), &wants, &had))
        return false;
    if (!is_about(fares, slot))
        note(fares, slot, had);
    return wants && had - load_relaxed(&fares->had) < HAD_NS;
}

static bool has_no_cpu(struct reader_fares *fares, const struct reader_slot *slot)
{
    if (is_time_again(&fares->looked_at, os_clock_ns(), LOOK_NS))
        store_relaxed(&fares->lacks_cpu, (uint32_t)fares_badly(fares, slot));
    return load_relaxed(&fares->lacks_cpu);
}

static bool is_under_way(const struct prudence_domain *domain)
{
    return !domain->scheme->drive || sequence_before(load_relaxed(&domain->progress.completed),
                                                     load_relaxed(&domain->shared.sequence));
}

bool gp_outstays(struct prudence_domain *domain, uint64_t began, uint64_t nanoseconds)
{
    const struct reader_slot *slot = gp_held_up_by(domain);
    uint64_t since = slot ? max_size(stall_since(slot), began) : began;
    uint64_t stayed = os_clock_ns() - since;

    if (stayed < nanoseconds)
        return false;
    if (slot)
        return stayed >= AT_MOST * nanoseconds || !has_no_cpu(&domain->outstays, slot);
    return !domain->scheme->held_up_by && is_under_way(domain);
}

/* --------------------------------------------------------------------------- a reader that is just in the way */

#define SOON_NS 500000 /* a look takes some 20 us */

/*
 * Whether a reader that stays in the way has lost its CPU: it wants one, and has had none between two looks. (A
 * reader that waits for a lock wants none; one that spins for it has had one.) For a thread that can give up its own
 * CPU for a while. It is a hint: a torn one costs a nap too many or too few.
 */
bool gp_reader_lacks_cpu(struct prudence_domain *domain)
{
    const struct reader_slot *slot = gp_held_up_by(domain);
    struct reader_fares *fares = &domain->in_the_way;
    bool wants = false, lacks;
    uint64_t had = 0;

    if (!slot || slot == readers_slot_if_any(domain)) /* this thread has its CPU */
        return false;
    if (!is_time_again(&fares->looked_at, os_clock_ns(), SOON_NS))
        return is_about(fares, slot) && load_relaxed(&fares->lacks_cpu);
    lacks = os_thread_wants_cpu(load_relaxed(&slot->thread), &wants, &had) &&
            is_about(fares, slot) && wants && had == load_relaxed(&fares->had);
    note(fares, slot, had);
    store_relaxed(&fares->lacks_cpu, (uint32_t)lacks);
    return lacks;
}
