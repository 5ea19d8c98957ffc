/* SPDX-License-Identifier: MIT */
/*
 * memb and qsbr: readers publish the sequence that they entered at; drivers make a barrier and
 * scan.
 *
 * The argument. Let an object be unlinked, then pushed to a batch; the batch detached, a full fence
 * F made, and the sequence read as s: the cookie is s + 1. Grace period s + 1 starts with the
 * increment of the sequence to s + 1, which comes after that read. A driver loads the goal g >= s +
 * 1, makes a barrier, scans all readers, and completes the least sequence among the goal and the
 * active readers' words.
 *   - A section that entered with a sequence >= s + 1 read it after the increment, so after F, and
 *     cannot find the object. Such sections do not hold the grace period up.
 *   - A section that entered with a smaller sequence either published its word before the barrier,
 *     so the scan sees the word or sees that the section has ended; or publishes after the barrier,
 *     so its later reads come after the barrier, hence after the unlink.
 *
 * "Published before or after the barrier" is a dichotomy because the barrier is a membarrier, which
 * fences the reader's CPU, or because the reader itself fences between publishing and reading.
 *   - The goal is loaded before the barrier. Otherwise a grace period could start, and readers with
 *     smaller sequences could publish, between the barrier and the load. The mode is read after the
 *     goal.
 *   - A second scan for the same goal needs no second barrier: `barrier_goal`.
 *
 * Any number of threads may do each step at once, because start is a compare-and-swap and
 * completion takes the maximum. A driver that loses its CPU delays no other. Modelled exhaustively
 * for x86-TSO in tests/model/test_grace_period.py, and on the C11 memory model for the reorderings
 * of Arm in tests/model/c11/. The argument relies on a store reaching all other CPUs at once
 * (docs/explanation/models.md, "Where C11 is not enough").
 */
#include "gp/user/at_once.h"
#include "gp/user/domain.h"
#include "gp/user/drive.h"
#include "gp/user/mode.h"
#include "gp/user/parking.h"
#include "gp/user/scan.h"
#include "gp/user/slots.h"
#include "gp/user/stall.h"

/* Makes the barrier between loading the goal and scanning, once for each goal. */
static void make_barrier(struct prudence_domain *domain, uint64_t goal)
{
    uint64_t began;

    if (!sequence_before(load_acquire(&domain->barrier_goal), goal))
        return;
    if (load_acquire(&domain->readers_fence_themselves)) {
        os_full_fence();
        return; /* barrier_goal stays: this fence does not cover readers that stop fencing later */
    }
    began = os_clock_ns();
    parking_membarrier(domain);
    gp_drive_note_cost(domain, os_clock_ns() - began);
    add_relaxed(&domain->membarriers, 1);
    gp_drive_raise(&domain->barrier_goal, goal);
}

/*
 * Returns the reader that the last scan found furthest behind, if that reader holds up the grace
 * period under way: the section was entered before the newest grace period began, and `completed`
 * is as far as the section permits. Until the reader leaves, no scan completes anything. The word
 * alone proves this, however old the hint is, because a reader that has ended and entered again has
 * the newest sequence. Returns NULL if no such reader is known; else `*section` is that section.
 *
 * This matters with more threads than CPUs. A reader that loses its CPU in a section stays for
 * milliseconds, and threads that defer in that time would make a barrier and a scan for each batch.
 */
static struct reader_slot *memb_find_in_the_way(const struct prudence_domain *domain,
                                                uint64_t *section)
{
    struct reader_slot *slot = load_acquire(&domain->furthest_behind);
    uint64_t word = slot ? load_relaxed(&slot->reader.word) : 0;

    *section = word & ~PRUDENCE_NESTING_MASK;
    return word && !sequence_before(load_relaxed(&domain->progress.completed), *section) &&
                   sequence_before(*section, load_relaxed(&domain->shared.sequence))
               ? slot
               : NULL;
}

static struct reader_slot *memb_held_up_by(const struct prudence_domain *domain)
{
    uint64_t section;

    return memb_find_in_the_way(domain, &section);
}

static void memb_drive(struct prudence_domain *domain, uint64_t goal)
{
    uint64_t section;
    struct reader_slot *slot = memb_find_in_the_way(domain, &section);
    unsigned outside;

    if (slot) { /* the reader may be in another section by now, which blocks no thread */
        stall_note(domain, slot, section);
        return;
    }
    make_barrier(domain, goal);
    add_relaxed(&domain->scans, 1);
    gp_drive_complete(domain, scan_readers(domain, goal, &outside));
    parking_after_scan(domain, outside);
    mode_choose(domain);
}

static bool memb_is_cheap(const struct prudence_domain *domain)
{
    return load_relaxed(&domain->readers_fence_themselves);
}

const struct gp_scheme gp_memb = {
    .name = "memb",
    .drive = memb_drive,
    .is_cheap = memb_is_cheap,
    .held_up_by = memb_held_up_by,
    .at_once = at_once_end,
    .ask = at_once_ask_if_due,
    .is_busy = slots_any_inside,
};

/* An explicit wait is the program's word as well. */
static void memb_urge(struct prudence_domain *domain)
{
    gp_drive_for_caller(domain);
}

const struct gp_scheme gp_memb_by_callers = {
    .name = "memb",
    .drive_for_caller = memb_drive,
    .urge = memb_urge,
    .is_cheap = memb_is_cheap,
    .held_up_by = memb_held_up_by,
    .is_busy = slots_any_inside,
};
