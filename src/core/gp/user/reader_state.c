/* SPDX-License-Identifier: MIT */
/*
 * The state of the thread of a blocking reader, judged by the CPU time that the system reports.
 *
 * The question is whether a section has stayed longer than the waiting thread can bear. An implicit
 * wait ends after wait_max, because the caller may hold a lock that the reader wants inside the
 * section; such a section stays for as long as the wait lasts. But then the reader is blocked, or
 * tries again and again. A reader that only lacks a CPU leaves when it gets one. With many times
 * more threads than CPUs that takes longer than wait_max, so the waiter goes on waiting, but not
 * forever, because the reader may never get a CPU.
 *
 * One of the waiting threads checks, every 10 ms, and the others use the answer. They may read an
 * answer torn between two checks, or about a reader that was blocking just before; then one of
 * them gives up 10 ms too early or too late.
 */
#include "base/pace.h"
#include "gp/user/domain.h"
#include "gp/user/drive.h"
#include "gp/user/reader_state.h"
#include "gp/user/readers.h"
#include "gp/user/stall.h"

#define AT_MOST 20 /* factor by which a reader without a CPU may stay longer */

static uint64_t reader_state_section_of(const struct reader_slot *slot)
{
    return load_relaxed(&slot->reader.word) & ~PRUDENCE_NESTING_MASK;
}

static bool is_about(const struct reader_state *state, const struct reader_slot *slot)
{
    return load_relaxed(&state->reader) == slot &&
           load_relaxed(&state->section) == reader_state_section_of(slot);
}

static void note(struct reader_state *state, const struct reader_slot *slot, uint64_t had)
{
    store_relaxed(&state->reader, slot);
    store_relaxed(&state->section, reader_state_section_of(slot));
    store_relaxed(&state->had, had);
}

/* --------------------------------------------------------------- a section that has stayed long */

#define LOOK_NS 10000000
#define HAD_NS  20000000 /* enough to leave a section; /proc reports CPU time in units of 10 ms */

/* Returns whether the thread wants a CPU and has had less than HAD_NS since the first check. */
static bool state_is_bad(struct reader_state *state, const struct reader_slot *slot)
{
    uint64_t had;
    bool wants;

    if (!os_thread_wants_cpu(load_relaxed(&slot->thread), &wants, &had))
        return false;
    if (!is_about(state, slot))
        note(state, slot, had);
    return wants && had - load_relaxed(&state->had) < HAD_NS;
}

static bool has_no_cpu(struct reader_state *state, const struct reader_slot *slot)
{
    if (is_time_again(&state->looked_at, os_clock_ns(), LOOK_NS))
        store_relaxed(&state->lacks_cpu, (uint32_t)state_is_bad(state, slot));
    return load_relaxed(&state->lacks_cpu);
}

static bool reader_state_is_under_way(const struct prudence_domain *domain)
{
    return !domain->scheme->drive || sequence_before(load_relaxed(&domain->progress.completed),
                                                     load_relaxed(&domain->shared.sequence));
}

/* Returns whether a reader may be blocking that nothing shows. None is blocking where objects
 * are polled one by one. */
static bool reader_state_is_unseen(const struct prudence_domain *domain)
{
    return !gp_drive_sees_readers(domain) && !domain->scheme->poll_objects;
}

bool gp_outstays(struct prudence_domain *domain, uint64_t began, uint64_t nanoseconds)
{
    const struct reader_slot *slot = gp_drive_held_up_by(domain);
    uint64_t since = slot ? max_size(stall_since(slot), began) : began;
    uint64_t stayed = os_clock_ns() - since;

    if (stayed < nanoseconds)
        return false;
    if (slot)
        return stayed >= AT_MOST * nanoseconds || !has_no_cpu(&domain->outstays, slot);
    return reader_state_is_unseen(domain) && reader_state_is_under_way(domain);
}

/* ------------------------------------------------------------- a reader that is just blocking */

#define SOON_NS 500000 /* a check takes some 20 us */

/*
 * Returns whether a blocking reader has lost the CPU: the thread wants one, and had none between
 * two checks. (A reader that waits for a lock wants none; one that spins for a lock has had one.)
 * For a thread that can give up its own CPU for a while. The answer is a hint; a torn one costs a
 * nap too many or too few.
 */
bool gp_reader_lacks_cpu(struct prudence_domain *domain)
{
    const struct reader_slot *slot = gp_drive_held_up_by(domain);
    struct reader_state *state = &domain->in_the_way;
    bool wants = false, lacks;
    uint64_t had = 0;

    if (!slot || slot == readers_slot_if_any(domain)) /* this thread has a CPU */
        return false;
    if (!is_time_again(&state->looked_at, os_clock_ns(), SOON_NS))
        return is_about(state, slot) && load_relaxed(&state->lacks_cpu);
    lacks = os_thread_wants_cpu(load_relaxed(&slot->thread), &wants, &had) &&
            is_about(state, slot) && wants && had == load_relaxed(&state->had);
    note(state, slot, had);
    store_relaxed(&state->lacks_cpu, (uint32_t)lacks);
    return lacks;
}

/* --------------------------------------------- a reader that threads are held back because of */

#define FIRST_LOOK_NS  50000 /* least time between checks of two readers */
#define SECOND_LOOK_NS 200000

/* Returns the state of the thread of a section that was read before. */
static enum gp_reader_state state_since(const struct reader_state *state, bool wants, uint64_t had)
{
    if (!wants || had - load_relaxed(&state->had) >= HAD_NS)
        return GP_READER_STAYS;
    return had == load_relaxed(&state->had_last) ? GP_READER_LACKS_CPU : GP_READER_NEW;
}

static enum gp_reader_state state_now(struct reader_state *state, const struct reader_slot *slot)
{
    uint64_t had;
    bool wants;
    enum gp_reader_state found;

    if (!os_thread_wants_cpu(load_relaxed(&slot->thread), &wants, &had))
        return GP_READER_UNKNOWN;
    if (is_about(state, slot)) {
        found = state_since(state, wants, had);
    } else {
        note(state, slot, had);
        found = wants ? GP_READER_NEW : GP_READER_STAYS;
    }
    store_relaxed(&state->had_last, had);
    return found;
}

/* Domains whose readers have no slots do not report which reader is blocking. */
static enum gp_reader_state state_unseen(const struct prudence_domain *domain)
{
    return reader_state_is_unseen(domain) && reader_state_is_under_way(domain) ? GP_READER_UNKNOWN
                                                                               : GP_READER_NONE;
}

enum gp_reader_state gp_state_of_reader(struct prudence_domain *domain)
{
    const struct reader_slot *slot = gp_drive_held_up_by(domain);
    struct reader_state *state = &domain->held_back;
    bool again;

    if (!slot)
        return state_unseen(domain);
    if (slot == readers_slot_if_any(domain)) /* this thread has a CPU */
        return GP_READER_STAYS;
    again = is_about(state, slot);
    if (is_time_again(&state->looked_at, os_clock_ns(), again ? SECOND_LOOK_NS : FIRST_LOOK_NS))
        store_relaxed(&state->state, (uint32_t)state_now(state, slot));
    else if (!again)
        return GP_READER_NEW;
    return (enum gp_reader_state)load_relaxed(&state->state);
}
