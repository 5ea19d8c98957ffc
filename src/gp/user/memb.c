/* SPDX-License-Identifier: MIT */
/*
 * memb and qsbr: readers publish the sequence that they entered at; drivers make a barrier and scan.
 *
 * The argument. Let an object be unlinked, then pushed to a batch; the batch detached, a full
 * fence F made, and the sequence read as s: its cookie is s + 1. Grace period s + 1 starts with the
 * increment of the sequence to s + 1, which comes after that read. A driver loads the goal g >=
 * s + 1, makes its barrier, scans all readers, and completes the least sequence among the goal and
 * the active readers' words.
 *  - A section that entered with a sequence >= s + 1 read it after the increment, so after F: it
 *    cannot find the object. Such sections do not hold the grace period up.
 *  - A section that entered with a smaller sequence either had published its word before the
 *    barrier (then the scan sees it, or sees that it has ended), or publishes it after the barrier:
 *    then what it reads after publishing it reads after the barrier, hence after the unlink.
 * "Published before or after the barrier" is a dichotomy because the barrier is a membarrier, which
 * fences the reader's CPU; or because the reader fences itself between publishing and reading.
 *  - The goal is loaded before the barrier: loaded after it, a grace period could start, and
 *    readers with smaller sequences could publish, in between. The mode is read after the goal.
 *  - A second scan for the same goal needs no second barrier: `barrier_goal`.
 * Every step may be done by any number of threads at once: start is a compare-and-swap, completion
 * takes the maximum. A driver that loses its CPU delays nobody. Modelled exhaustively for x86-TSO in
 * tests/model/test_grace_period.py, and on the C11 memory model for what Arm allows in
 * tests/model/c11/. It counts on a store reaching all other CPUs at once (docs/explanation/models.md,
 * "Where C11 is not enough").
 */
#include "gp/user/domain.h"

/* A sliding mean. If the driver lost its CPU, the sample is long and says nothing of the cost; so one sample counts
 * for at most some four times the mean. */
static void note_cost(struct prudence_domain *domain, uint64_t cost)
{
    uint64_t mean = load_relaxed(&domain->membarrier_cost);

    store_relaxed(&domain->membarrier_cost, (mean * 7 + min_size(cost, 4 * mean + 1000)) / 8);
}

/* The barrier between loading the goal and scanning, once for each goal. */
static void make_barrier(struct prudence_domain *domain, uint64_t goal)
{
    uint64_t began;

    if (!sequence_before(load_acquire(&domain->barrier_goal), goal))
        return;
    if (load_acquire(&domain->readers_fence_themselves)) {
        os_full_fence();
        return; /* not noted: it would not do for readers that stop fencing later */
    }
    began = os_clock_ns();
    readers_membarrier(domain);
    note_cost(domain, os_clock_ns() - began);
    add_relaxed(&domain->membarriers, 1);
    gp_raise(&domain->barrier_goal, goal);
}

/*
 * The reader that the last scan found furthest behind, if it holds up what is under way: its section was entered
 * before the newest grace period began, and `completed` has come as far as that section lets it. So until it leaves,
 * no scan completes anything. Its word says so by itself, however old the hint is: a reader that has left and entered
 * again has the newest sequence. NULL: no such reader is known.
 *
 * It matters when there are more threads than CPUs: a reader that loses its CPU in a section stays for milliseconds,
 * and threads that defer in that time would make a barrier and a scan for each batch.
 */
static struct reader_slot *held_up_by(const struct prudence_domain *domain)
{
    struct reader_slot *slot = load_acquire(&domain->furthest_behind);
    uint64_t word = slot ? load_relaxed(&slot->reader.word) : 0;
    uint64_t section = word & ~PRUDENCE_NESTING_MASK;

    return word && !sequence_before(load_relaxed(&domain->progress.completed), section) &&
                   sequence_before(section, load_relaxed(&domain->shared.sequence))
               ? slot
               : NULL;
}

static void drive(struct prudence_domain *domain, uint64_t goal)
{
    struct reader_slot *slot = held_up_by(domain);
    unsigned outside;

    if (slot) {
        stall_note(domain, slot, load_relaxed(&slot->reader.word));
        return;
    }
    make_barrier(domain, goal);
    add_relaxed(&domain->scans, 1);
    gp_complete(domain, memb_scan(domain, goal, &outside));
    readers_park(domain, outside);
    mode_choose(domain);
}

static bool is_cheap(const struct prudence_domain *domain)
{
    return load_relaxed(&domain->readers_fence_themselves);
}

const struct gp_scheme gp_memb = {
    .name = "memb",
    .drive = drive,
    .is_cheap = is_cheap,
    .held_up_by = held_up_by,
    .at_once = memb_at_once,
    .ask = memb_ask,
    .is_busy = readers_any_inside,
};
