/* SPDX-License-Identifier: MIT */
/*
 * Grace periods: snapshot, request, drive, wait.
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
 * tests/model/c11/. It counts on a store reaching all other CPUs at once (docs/models.md, "Where C11
 * is not enough").
 */
#include "gp/domain.h"

gp_cookie gp_snapshot(struct prudence_domain *domain)
{
    os_full_fence(); /* F above */
    return load_relaxed(&domain->shared->sequence) + GP_STEP;
}

void gp_request(struct prudence_domain *domain, gp_cookie cookie)
{
    uint64_t sequence = load_relaxed(&domain->shared->sequence);

    if (domain->kind == PRUDENCE_DOMAIN_MANUAL)
        return;
    /* A cookie is at most one step ahead, so one success of anybody is enough. */
    if (sequence_before(sequence, cookie))
        compare_exchange(&domain->shared->sequence, &sequence, sequence + GP_STEP);
}

/* Raises *value to `to` unless it is there already; returns by how much. Release: with all that
 * came before. */
static uint64_t raise_to(uint64_t *value, uint64_t to)
{
    uint64_t current = load_relaxed(value);

    while (sequence_before(current, to))
        if (compare_exchange(value, &current, to))
            return to - current;
    return 0;
}

/* A sliding mean. A driver that lost its CPU meanwhile took long, which says nothing of the cost: so
 * one sample counts for at most some four times the mean. */
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
    os_membarrier();
    note_cost(domain, os_clock_ns() - began);
    add_relaxed(&domain->membarriers, 1);
    raise_to(&domain->barrier_goal, goal);
}

/* The least of the goal and all active readers' sequences. */
static uint64_t scan(struct prudence_domain *domain, uint64_t goal)
{
    struct reader_chunk *chunk;
    struct reader_slot *slot;
    uint64_t least = goal;

    for_each_slot(chunk, slot, domain)
    {
        /* Acquire: pairs with the release at exit; what the section read was read before. */
        uint64_t word = load_acquire(&slot->reader.word);

        if (word == 0 || !sequence_before(word & ~PRUDENCE_NESTING_MASK, goal))
            continue;
        stall_note(domain, slot, word);
        if (sequence_before(word & ~PRUDENCE_NESTING_MASK, least))
            least = word & ~PRUDENCE_NESTING_MASK;
    }
    return least;
}

void gp_drive(struct prudence_domain *domain)
{
    uint64_t goal;

    if (domain->kind == PRUDENCE_DOMAIN_MANUAL)
        return;
    goal = load_acquire(&domain->shared->sequence);
    if (!sequence_before(load_acquire(&domain->progress.completed), goal))
        return;
    make_barrier(domain, goal);
    add_relaxed(&domain->scans, 1);
    add_relaxed(&domain->grace_periods,
                raise_to(&domain->progress.completed, scan(domain, goal)) / GP_STEP);
    mode_choose(domain);
}

/* How long another driver is trusted to be scanning. */
#define SCAN_TRUST_NS 20000

void gp_drive_shared(struct prudence_domain *domain)
{
    uint64_t began = load_relaxed(&domain->scan_began);
    uint64_t now = os_clock_ns();

    if (began && now - began < SCAN_TRUST_NS)
        return;
    store_relaxed(&domain->scan_began, now);
    gp_drive(domain);
    store_relaxed(&domain->scan_began, (uint64_t)0);
}

/* Readers do not wake anybody, so a waiter looks again: at once at first, then ever more rarely. */
static void wait_a_little(unsigned round)
{
    if (round < 32) {
        for (int i = 0; i < 32; i++)
            os_relax();
        return;
    }
    os_sleep_ns(round < 64 ? 10000 : 100000);
}

/* Waiters share: while two grace periods are under way already, a third is not started. Who comes
 * meanwhile gets the same cookie, and the readers that it would wait for are those of these two. */
static bool is_crowded(const struct prudence_domain *domain)
{
    uint64_t completed = load_acquire(&domain->progress.completed);

    return load_relaxed(&domain->shared->sequence) - completed >= 2 * GP_STEP;
}

bool gp_wait(struct prudence_domain *domain, gp_cookie cookie, uint64_t deadline)
{
    debug_assert(os_locks_held() == 0);
    for (unsigned round = 0; !gp_poll(domain, cookie); round++) {
        if (!is_crowded(domain))
            gp_request(domain, cookie);
        gp_drive(domain);
        if (gp_poll(domain, cookie))
            return true;
        if (deadline && os_clock_ns() >= deadline)
            return false;
        wait_a_little(round);
    }
    return true;
}

bool gp_is_cheap(const struct prudence_domain *domain)
{
    return load_relaxed(&domain->readers_fence_themselves) ||
           domain->kind == PRUDENCE_DOMAIN_MANUAL;
}

void gp_note_expired(struct prudence_domain *domain)
{
    struct reader_chunk *chunk;
    struct reader_slot *slot;
    uint64_t completed = load_relaxed(&domain->progress.completed);

    if (domain->kind == PRUDENCE_DOMAIN_MANUAL) {
        store_relaxed(&domain->expired_word, completed);
        store_release(&domain->expired_manually, 1u);
        return;
    }
    for_each_slot(chunk, slot, domain)
    {
        uint64_t word = load_relaxed(&slot->reader.word);

        if (word && !sequence_before(completed, word & ~PRUDENCE_NESTING_MASK)) {
            store_relaxed(&domain->expired_word, word & ~PRUDENCE_NESTING_MASK);
            store_release(&domain->expired_reader, slot);
            return;
        }
    }
}

bool gp_worth_waiting(struct prudence_domain *domain)
{
    struct reader_slot *slot = load_acquire(&domain->expired_reader);
    uint64_t word;

    if (load_acquire(&domain->expired_manually)) {
        if (load_relaxed(&domain->progress.completed) == load_relaxed(&domain->expired_word))
            return false;
        store_relaxed(&domain->expired_manually, 0u);
    }
    if (!slot)
        return true;
    word = load_relaxed(&slot->reader.word);
    if (word && (word & ~PRUDENCE_NESTING_MASK) == load_relaxed(&domain->expired_word))
        return false;
    store_relaxed(&domain->expired_reader, (struct reader_slot *)NULL);
    return true;
}
