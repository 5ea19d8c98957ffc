/* SPDX-License-Identifier: MIT */
/*
 * How the thread of the reader fares that stays in the way, by what the system tells of its CPU time.
 *
 * Whether a section has stayed longer than the thread that waits for it can bear. An implicit wait ends after wait_max
 * since its caller may hold a lock that the reader wants inside its section: then that section stays for as long as the
 * wait does. But such a reader is blocked, or tries again and again. One that merely wants a CPU, and has had none,
 * leaves when it gets one: where threads are many times more than CPUs that takes longer than wait_max, and it is
 * waited for; but not for ever, for it may never get one.
 *
 * One of the threads that wait looks, each 10 ms, and the others believe it. What they read may be torn between two
 * looks, or be of another reader that was in the way just before: one of them then gives up 10 ms too early or too
 * late.
 */
#include "gp/domain.h"

#define LACKS_LOOK_NS 500000 /* a look takes some 20 us */

#define LOOK_NS 10000000
#define HAD_NS  20000000 /* enough to leave a section; /proc tells it to 10 ms */

#define AT_MOST 20 /* times what others may stay, without a CPU */

static bool fares_badly(struct prudence_domain *domain, const struct reader_slot *slot)
{
    uint64_t section = load_relaxed(&slot->reader.word) & ~PRUDENCE_NESTING_MASK, had;
    bool wants;

    if (!os_thread_wants_cpu(load_relaxed(&slot->thread), &wants, &had))
        return false;
    if (load_relaxed(&domain->fares_reader) != slot ||
        load_relaxed(&domain->fares_section) != section) {
        store_relaxed(&domain->fares_reader, slot);
        store_relaxed(&domain->fares_section, section);
        store_relaxed(&domain->fares_had, had);
    }
    return wants && had - load_relaxed(&domain->fares_had) < HAD_NS;
}

static bool has_no_cpu(struct prudence_domain *domain, const struct reader_slot *slot)
{
    uint64_t now = os_clock_ns(), then = load_relaxed(&domain->fares_looked_at);

    if (now - then >= LOOK_NS && compare_exchange(&domain->fares_looked_at, &then, now))
        store_relaxed(&domain->fares_badly, (uint32_t)fares_badly(domain, slot));
    return load_relaxed(&domain->fares_badly);
}

/*
 * Whether a reader stays in the way that has lost its CPU: it wants one, and has had none between two looks. (A reader
 * that waits for a lock wants none; one that spins for it has had one.) For a thread that can give up its own for a
 * while. It is a hint, so that a torn one costs a nap too many or too few.
 */
bool gp_reader_lacks_cpu(struct prudence_domain *domain)
{
    const struct reader_slot *slot = gp_held_up_by(domain);
    uint64_t now, section, had, then = load_relaxed(&domain->lacks_looked_at);
    bool wants, same;

    if (!slot || slot == readers_slot_if_any(domain)) /* this thread has its CPU */
        return false;
    now = os_clock_ns();
    section = load_relaxed(&slot->reader.word) & ~PRUDENCE_NESTING_MASK;
    same = load_relaxed(&domain->lacks_reader) == slot &&
           load_relaxed(&domain->lacks_section) == section;
    if (now - then < LACKS_LOOK_NS || !compare_exchange(&domain->lacks_looked_at, &then, now))
        return same && load_relaxed(&domain->lacks_cpu);
    if (!os_thread_wants_cpu(load_relaxed(&slot->thread), &wants, &had))
        wants = same = false;
    store_relaxed(&domain->lacks_cpu,
                  (uint32_t)(same && wants && had == load_relaxed(&domain->lacks_had)));
    store_relaxed(&domain->lacks_reader, slot);
    store_relaxed(&domain->lacks_section, section);
    store_relaxed(&domain->lacks_had, had);
    return load_relaxed(&domain->lacks_cpu);
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
        return stayed >= AT_MOST * nanoseconds || !has_no_cpu(domain, slot);
    return !domain->scheme->held_up_by && is_under_way(domain);
}
