/* SPDX-License-Identifier: MIT */
/*
 * Grace periods of memb and qsbr domains without a system call, for a thread that closes a batch
 * (gp_try; ADR 37, ADR 41). They are over at once if no reader is inside, and soon if readers
 * fence, or fence when they are asked.
 *
 * Both make the driver's steps: start, load the goal, then the mode, then make the barrier, then
 * check the readers' words, then complete. So the argument at the head of memb.c holds. The
 * difference is the barrier when readers do not fence: then the readers make it. This thread marks
 * each awake slot; the reader's next entry finds the mark, fences, and removes the mark
 * (parking.c). Once all marks are gone, each reader has fenced at one point of its program after
 * the load of the goal, as a membarrier would have made it do; so this counts as the goal's
 * barrier, also for other drivers. A reader that does not enter again does not answer. Then a
 * driver makes a membarrier, as soon as one would have been due without asking, and parks that
 * reader.
 *
 * Locks: none. The thread that holds `parking` asks; the others go on.
 */
#include "gp/user/at_once.h"
#include "gp/user/domain.h"
#include "gp/user/drive.h"
#include "gp/user/mode.h"
#include "gp/user/parking.h"
#include "gp/user/readers.h"
#include "gp/user/scan.h"

#define LOOK_AT_MOST 32 /* readers */

/* A reader pays some 300 ns for each question, for cache misses on its own line and a fence. */
#define ASK_AGAIN_NS      UINT64_C(6000)
#define ASK_AGAIN_NS_EACH UINT64_C(4000) /* more for each reader */

/*
 * Returns whether no section is open. A word proves this only if the slot is this thread's own, or
 * if readers fence. A reader that is parked or not registered has no section. Stores the number of
 * other threads' entries, which are counted while they fence, in *entries. Returns false beyond a
 * few slots, because the caller owns a CPU's caches.
 */
static bool nobody_is_inside(const struct prudence_domain *domain, uint64_t *entries)
{
    bool fenced = load_acquire(&domain->readers_fence_themselves);
    const struct reader_slot *own = readers_slot_if_any(domain), *slot;

    *entries = 0;
    if (parking_count_awake(domain) > LOOK_AT_MOST)
        return false;
    for_each_awake(walk, slot, domain)
    {
        if (!load_acquire(&slot->thread))
            continue;
        if (load_acquire(&slot->reader.word) || (slot != own && !fenced))
            return false;
        *entries += slot != own ? load_relaxed(&slot->reader.entries) : 0;
    }
    return true;
}

/*
 * Begins and ends a grace period at once. A full fence serves as the barrier even if readers do not
 * fence, provided that no other thread is awake:
 *   - this thread's own sections are in program order with everything done here;
 *   - a thread that registers or wakes later fences after claiming the slot or setting the bit, and
 *     before reading. If this thread's check of the slots misses that, this fence came before the
 *     other one, and with it the start and every unlink whose cookie the goal covers, so that
 *     reader cannot find an unlinked object.
 *
 * `barrier_goal` is not raised, because that would be of no use.
 *
 * Checks before starting as well, so that nothing is written for no effect. Leaves readers alone
 * that have entered since the last check, because each of their entries would miss the line of the
 * sequence.
 */
bool at_once_end(struct prudence_domain *domain, gp_cookie cookie)
{
    uint64_t entries, goal;

    if (!nobody_is_inside(domain, &entries))
        return false;
    if (entries != load_relaxed(&domain->entries_then)) {
        store_relaxed(&domain->entries_then, entries);
        return false;
    }
    gp_request(domain, cookie);
    goal = load_acquire(&domain->shared.sequence);
    os_full_fence();
    if (!nobody_is_inside(domain, &entries))
        return false;
    count_add(&domain->at_once, 1);
    gp_drive_complete(domain, goal);
    return gp_poll(domain, cookie);
}

/* ------------------------------------------------------------------------------------ asking */

static bool is_asked_for(const struct prudence_domain *domain)
{
    return sequence_before(load_relaxed(&domain->progress.completed),
                           load_relaxed(&domain->asked_goal));
}

static bool is_too_soon(const struct prudence_domain *domain, unsigned awake)
{
    return sequence_before(os_clock_ns(), load_relaxed(&domain->asked_at) + ASK_AGAIN_NS +
                                              ASK_AGAIN_NS_EACH * awake);
}

/* Loads the goal after the request, and before any part of the goal's barrier. */
static void at_once_begin(struct prudence_domain *domain, gp_cookie cookie)
{
    store_relaxed(&domain->asked_at, os_clock_ns());
    gp_request(domain, cookie);
    store_relaxed(&domain->asked_goal, load_acquire(&domain->shared.sequence));
    domain->asked = false;
}

/* Makes the barrier between loading the goal and reading words; returns whether it is complete.
 * The mode is loaded after the goal. */
static bool barrier_is_made(struct prudence_domain *domain)
{
    uint64_t goal = load_relaxed(&domain->asked_goal);

    if (!sequence_before(load_acquire(&domain->barrier_goal), goal))
        return true;
    if (load_acquire(&domain->readers_fence_themselves)) {
        os_full_fence();
        return true;
    }
    if (!domain->asked) {
        domain->asked_by = readers_slot_if_any(domain);
        parking_ask(domain, domain->asked_by);
        domain->asked = true;
    }
    if (!parking_all_answered(domain, domain->asked_by)) {
        if (!load_relaxed(&domain->unanswered))
            store_relaxed(&domain->unanswered, 1u);
        return false;
    }
    store_relaxed(&domain->unanswered, 0u);
    gp_drive_raise(&domain->barrier_goal, goal);
    return true;
}

static void at_once_look(struct prudence_domain *domain)
{
    uint64_t ended = load_relaxed(&domain->grace_periods);

    scan_and_complete(domain, load_relaxed(&domain->asked_goal));
    count_add(&domain->at_once, load_relaxed(&domain->grace_periods) - ended);
    if (load_relaxed(&domain->readers_fence_themselves))
        mode_choose(domain); /* from fenced to fence-free: no system call */
}

static enum gp_tried at_once_ask(struct prudence_domain *domain, gp_cookie cookie)
{
    if (!is_asked_for(domain))
        at_once_begin(domain, cookie);
    if (barrier_is_made(domain))
        at_once_look(domain);
    if (gp_poll(domain, cookie))
        return GP_OVER;
    return sequence_before(load_relaxed(&domain->asked_goal), cookie.value) ? GP_LATER : GP_ASKED;
}

/* Writes nothing while there is nothing to do, because writers on all CPUs call this. */
enum gp_tried at_once_ask_if_due(struct prudence_domain *domain, gp_cookie cookie)
{
    unsigned awake;
    uint32_t nobody = 0;
    enum gp_tried tried;

    if (gp_is_held_up(domain) || (awake = parking_count_awake(domain)) > LOOK_AT_MOST)
        return GP_REFUSED;
    if (!is_asked_for(domain) && is_too_soon(domain, awake))
        return awake ? GP_LATER : GP_OTHERS;
    if (load_relaxed(&domain->parking) || !compare_exchange(&domain->parking, &nobody, 1u))
        return GP_REFUSED;
    tried = at_once_ask(domain, cookie);
    store_release(&domain->parking, 0u);
    return tried;
}
