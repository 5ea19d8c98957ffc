/* SPDX-License-Identifier: MIT */
/*
 * hazard: readers name the objects that they use (<prudence/hazard.h>); batches become safe object
 * by object.
 *
 * The argument. Let an object x be unlinked, then pushed to a batch; the batch detached, a full
 * fence F made, and the sequence read as s: the cookie is s + 1. A thread that finds the goal g >=
 * s + 1 in the sequence makes a barrier B and then reads each slot once. A reader writes x's
 * name to its slot, then reads the link, and uses x only if the link still has x.
 *   - If the reader wrote the name before B, the check sees the name, or what the slot's user wrote
 *     there later; the use of x has then ended, and its accesses come before the check (release,
 *     acquire).
 *   - If after B, the reader's load of the link comes after B, so after the unlink, and does not
 *     find x.
 * "Before or after B" is a dichotomy because B is a membarrier, or because readers fence between
 * the name and the check. B comes after the load of g, and the mode is read after g, as in memb.c.
 * A second check needs no second barrier if one was made for a goal at or past the cookie:
 * `barrier_goal`.
 *
 * So after B an object that no slot names is safe, alone: hazard_poll_objects(). A grace period
 * ends, for all objects, when each slot has stopped naming the object that it named after B, and no
 * higher slot of the record has taken the name over: hazard_drive().
 * To know that, one thread at a time keeps names that it saw. It checks the slots in order: keeps
 * as many names as it has room for, waits until all of them are gone, and checks on from there (a
 * round). A later check at a slot is as good as an early one, because no protection of an unlinked
 * object begins after B. A thread that loses its CPU with a round delays grace periods, and no
 * poll.
 *
 * Modelled for x86-TSO in tests/model/test_hazard.py, and for C11 in tests/model/c11/.
 */
#include "gp/user/at_once.h"
#include "gp/user/domain.h"
#include "gp/user/drive.h"
#include "gp/user/slots.h"
#include "toolkit/domains/hazard.h"
#include "toolkit/domains/hazard_names.h"
#include "toolkit/domains/schemes.h"

struct hazard_round {
    uint32_t driving; /* taken by compare-and-swap; guards the rest */
    bool under_way;
    uint64_t goal;
    struct hazard_watch watch;
};

/* ---------------------------------------------------------------------------------- barriers */

/* Makes every protection visible that began before, unless readers do that. The caller has loaded
 * its goal. Returns whether all CPUs were fenced. */
static bool fence_readers(void)
{
    if (hazard_slots_are_fenced()) {
        os_full_fence();
        return false;
    }
    os_membarrier();
    if (unlikely(!os_membarrier_available()))
        hazard_slots_barrier_failed();
    return true;
}

void hazard_barrier(void)
{
    os_full_fence();
    fence_readers();
}

/* Makes the barrier of a goal, unless one was made for `least` or later. */
static void hazard_make_barrier(struct prudence_domain *domain, uint64_t least, uint64_t goal)
{
    uint64_t began;

    if (!sequence_before(load_acquire(&domain->barrier_goal), least))
        return;
    began = os_clock_ns();
    if (!fence_readers())
        return; /* barrier_goal stays: this fence does not cover readers that stop fencing later */
    gp_drive_note_cost(domain, os_clock_ns() - began);
    add_relaxed(&domain->membarriers, 1);
    gp_drive_raise(&domain->barrier_goal, goal);
}

/* ------------------------------------------------------------------------- whole grace periods */

static void hazard_round_begin(struct prudence_domain *domain, struct hazard_round *round)
{
    round->goal = load_acquire(&domain->shared.sequence);
    hazard_make_barrier(domain, round->goal, round->goal);
    add_relaxed(&domain->scans, 1);
    hazard_names_watch(&round->watch);
    round->under_way = true;
}

static void round_drive(struct prudence_domain *domain, struct hazard_round *round)
{
    if (!round->under_way)
        hazard_round_begin(domain, round);
    if (!hazard_names_watched(&round->watch)) {
        hazard_slots_reap();
        hazard_names_report(domain, &round->watch);
        return;
    }
    round->under_way = false;
    gp_drive_complete(domain, round->goal);
}

/* Drives a round; and a second one if the first had begun before `goal`, and has ended. */
static void hazard_drive(struct prudence_domain *domain, uint64_t goal)
{
    struct hazard_round *round = domain->hazard;
    uint32_t nobody = 0;

    if (load_relaxed(&round->driving) || !compare_exchange(&round->driving, &nobody, 1u))
        return;
    round_drive(domain, round);
    if (!round->under_way && sequence_before(load_relaxed(&domain->progress.completed), goal))
        round_drive(domain, round);
    store_release(&round->driving, 0u);
}

#define LOOK_AT_MOST 32 /* records */

/* Returns whether a full fence of this thread is a barrier, and a check of few slots is enough. A
 * thread that claims a record later fences before it reads a link. */
static bool is_quick(void)
{
    bool only_own;

    return hazard_slots_records(&only_own) <= LOOK_AT_MOST &&
           (only_own || hazard_slots_are_fenced());
}

/* As at_once_end(): the driver's steps, with a full fence as the barrier. */
static bool hazard_at_once(struct prudence_domain *domain, gp_cookie cookie)
{
    uint64_t goal;

    if (!is_quick() || hazard_names_any())
        return false;
    gp_request(domain, cookie);
    goal = load_acquire(&domain->shared.sequence);
    os_full_fence();
    if (!is_quick() || hazard_names_any())
        return false;
    count_add(&domain->at_once, 1);
    gp_drive_complete(domain, goal);
    return gp_poll(domain, cookie);
}

static enum gp_tried hazard_ask(struct prudence_domain *domain, gp_cookie cookie)
{
    (void)domain, (void)cookie;
    return GP_REFUSED;
}

/* ------------------------------------------------------------------------------------- polls */

static unsigned hazard_poll_objects(struct prudence_domain *domain, gp_cookie cookie,
                                    void **objects, unsigned count, size_t size)
{
    unsigned safe;

    gp_request(domain, cookie);
    hazard_make_barrier(domain, cookie.value, load_acquire(&domain->shared.sequence));
    add_relaxed(&domain->scans, 1);
    safe = hazard_names_poll_objects(objects, count, size);
    hazard_slots_tell_over();
    if (safe < count)
        hazard_slots_reap();
    return safe;
}

static bool hazard_only_names_hold(const struct prudence_domain *domain, gp_cookie cookie)
{
    (void)domain, (void)cookie;
    return true;
}

/* ---------------------------------------------------------------------------------------- life */

static bool hazard_is_cheap(const struct prudence_domain *domain)
{
    (void)domain;
    return hazard_slots_are_fenced();
}

static void hazard_scheme_tell_over(const struct prudence_domain *domain)
{
    (void)domain;
    hazard_slots_tell_over();
}

/* No implicit wait is for a name, so none expires. */
static void hazard_note_expired(struct prudence_domain *domain)
{
    (void)domain;
}

static bool hazard_worth_waiting(struct prudence_domain *domain)
{
    (void)domain;
    return true;
}

static bool hazard_open(struct prudence_domain *domain)
{
    domain->hazard = os_meta_alloc(sizeof *domain->hazard);
    return domain->hazard != NULL;
}

static void hazard_close(struct prudence_domain *domain)
{
    os_meta_free(domain->hazard, sizeof *domain->hazard);
}

static void hazard_scheme_fork_child(struct prudence_domain *domain)
{
    domain->hazard->driving = 0;
    domain->hazard->under_way = false;
}

const struct gp_scheme gp_hazard = {
    .name = "hazard",
    .drive = hazard_drive,
    .is_cheap = hazard_is_cheap,
    .tell_over = hazard_scheme_tell_over,
    .at_once = hazard_at_once,
    .ask = hazard_ask,
    .poll_objects = hazard_poll_objects,
    .only_names_hold = hazard_only_names_hold,
    .is_busy = slots_any_inside,
    .note_expired = hazard_note_expired,
    .worth_waiting = hazard_worth_waiting,
    .open = hazard_open,
    .close = hazard_close,
    .thread_names = hazard_slots_thread_names,
    .fork_child = hazard_scheme_fork_child,
};
