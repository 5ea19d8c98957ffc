/* SPDX-License-Identifier: MIT */
/*
 * Chooses between fence-free and fenced readers.
 *
 * With fence-free readers a section costs nothing more, but each grace period costs a membarrier
 * (about 10 us with busy CPUs). With fenced readers a section costs 0.8 ns more and a grace period
 * no system call. The domain takes the mode that costs less at the measured rates, chosen at most
 * every 10 ms and only where grace periods are driven.
 *
 * Fence-free sections are not counted, because counting would cost half as much as the fence. So
 * when membarriers take more than a fiftieth of the time, the domain tries fenced mode, whose
 * sections are counted after their fence. If the fences cost more than twice what the membarriers
 * would, the domain returns to fence-free and does not try again for half a second.
 *
 * Switching. To fenced: notify the readers, membarrier, only then let drivers skip the membarrier.
 * To fence-free: first make drivers use the membarrier again, then let readers stop. Drivers read
 * the mode after their goal, readers after publishing (models 6 to 9 of the seed,
 * tests/model/test_grace_period.py; for Arm ADR 2). One thread switches at a time, the holder of
 * `choosing`. So modes may change at any time, also by an option set while readers are inside.
 */
#include "gp/user/domain.h"
#include "gp/user/mode.h"
#include "gp/user/parking.h"

/* Policy: do readers fence, or drivers? */
#define CHOICE_PERIOD_NS 10000000  /* ns; between two choices */
#define FENCE_COST_PS    800       /* ps; a locked instruction in a section */
#define WORTH_A_TRY      50        /* part; of the time: membarriers above it are worth a try */
#define NO_TRY_NS        500000000 /* ns; no try after fences cost more */

enum reader_mode gp_reader_mode = READER_MODE_AUTO;

static void switch_to_fenced(struct prudence_domain *domain)
{
    store_release(&domain->shared.fenced, 1u);
    parking_follow_mode(domain, true);
    os_membarrier();
    store_release(&domain->readers_fence_themselves, 1u);
    add_relaxed(&domain->mode_switches, 1);
}

static void switch_to_free(struct prudence_domain *domain)
{
    store_release(&domain->readers_fence_themselves, 0u);
    store_release(&domain->shared.fenced, 0u);
    parking_follow_mode(domain, false);
    add_relaxed(&domain->mode_switches, 1);
}

/* True for qsbr, where a thread fences at most once a grace period and reads without fences, so
 * there is nothing to choose. */
static bool is_fenced_for_good(const struct prudence_domain *domain)
{
    return domain->kind == PRUDENCE_DOMAIN_QSBR;
}

/* Sets the mode of a new domain, or of the default one at start. The default domain may have
 * readers already, but fenced ones, so this only switches to fence-free, in the right order. */
COLD void mode_start(struct prudence_domain *domain)
{
    bool fenced = is_fenced_for_good(domain) || !os_membarrier_available() ||
                  load_relaxed(&gp_reader_mode) == READER_MODE_FENCED;

    store_release(&domain->readers_fence_themselves, (uint32_t)fenced);
    store_release(&domain->shared.fenced, (uint32_t)fenced);
    parking_follow_mode(domain, fenced);
    domain->membarrier_cost = MEMBARRIER_COST_NS;
}

/* Returns the number of fenced sections that all threads entered since the last choice. A parked
 * thread's sections are counted once the thread enters again. */
static uint64_t entries_since(struct prudence_domain *domain)
{
    struct reader_slot *slot;
    uint64_t sum = 0;

    for_each_awake(walk, slot, domain)
    {
        uint64_t entries = load_relaxed(&slot->reader.entries);

        sum += entries - load_relaxed(&slot->entries_seen);
        store_relaxed(&slot->entries_seen, entries);
    }
    return sum;
}

/* Decides by the rates since the last choice, `elapsed` ns ago. */
static bool fenced_is_better(struct prudence_domain *domain, bool fenced_now, uint64_t elapsed)
{
    /* Grace periods that were over at once cost no membarrier. */
    uint64_t ended = load_relaxed(&domain->grace_periods) - load_relaxed(&domain->at_once);
    uint64_t cost_free =
        (ended - domain->grace_periods_then) * load_relaxed(&domain->membarrier_cost);
    uint64_t cost_fenced = entries_since(domain) * FENCE_COST_PS / 1000;
    uint64_t now = domain->chosen_at;
    enum reader_mode mode = load_relaxed(&gp_reader_mode);

    domain->grace_periods_then = ended;
    if (mode != READER_MODE_AUTO)
        return mode == READER_MODE_FENCED;
    if (!fenced_now)
        return cost_free > elapsed / WORTH_A_TRY && now >= domain->not_fenced_before;
    if (cost_fenced <= 2 * cost_free)
        return true;
    domain->not_fenced_before = now + NO_TRY_NS;
    return false;
}

static void switch_to(struct prudence_domain *domain, bool want_fenced)
{
    bool fenced = load_relaxed(&domain->readers_fence_themselves);

    if (want_fenced && !fenced)
        switch_to_fenced(domain);
    else if (!want_fenced && fenced)
        switch_to_free(domain);
}

static void choose(struct prudence_domain *domain, uint64_t elapsed)
{
    bool fenced = load_relaxed(&domain->readers_fence_themselves);

    switch_to(domain, fenced_is_better(domain, fenced, elapsed) || !os_membarrier_available());
}

void mode_choose(struct prudence_domain *domain)
{
    uint64_t now, elapsed;
    uint32_t nobody = 0;

    if (is_fenced_for_good(domain) ||
        (!os_membarrier_available() && load_relaxed(&domain->readers_fence_themselves)))
        return;
    now = os_clock_ns();
    elapsed = now - load_relaxed(&domain->chosen_at);
    if (elapsed < CHOICE_PERIOD_NS)
        return;
    if (!compare_exchange(&domain->choosing, &nobody, 1u))
        return;
    store_relaxed(&domain->chosen_at, now);
    choose(domain, elapsed);
    store_release(&domain->choosing, 0u);
}

/* Adopts a change of the option reader_mode, or of the availability of membarrier, before
 * returning. Readers may be inside and drivers at work. Waits for a thread that chooses at the same
 * time, for the length of a membarrier. */
void mode_follow_options(struct prudence_domain *domain)
{
    enum reader_mode mode = load_relaxed(&gp_reader_mode);
    uint32_t nobody = 0;

    if (is_fenced_for_good(domain))
        return;
    while (!compare_exchange(&domain->choosing, &nobody, 1u)) {
        nobody = 0;
        os_sleep_ns(1000);
    }
    if (!os_membarrier_available() || mode == READER_MODE_FENCED)
        switch_to(domain, true);
    else if (mode == READER_MODE_FREE)
        switch_to(domain, false);
    store_release(&domain->choosing, 0u);
}
