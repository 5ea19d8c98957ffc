/* SPDX-License-Identifier: MIT */
/*
 * Phases: a clock that many threads advance together, as a domain of the qsbr kind.
 *
 * One grace period is always under way: the present phase, named by the domain's sequence. A thread
 * that has joined is online, and a tick is a quiescent state, which publishes the phase in the
 * thread's word. The phase is over when no word of an online thread is older; then `completed` is
 * set to the phase, so the number of ended phases is the time. The thread that ends a phase starts
 * the next.
 *
 * When two threads make the last ticks at the same time, each publishes its word, fences, and
 * scans. The thread whose fence comes second sees both words. So the words need no lock, and a
 * phase in which all have ticked never stays open. Ending and starting are compare-and-swaps from
 * the phase that was scanned, so when many threads see the end, one of them advances the time, by
 * one.
 *
 * The scan stops at the first thread that has not ticked, and after the last slot that was ever
 * used. A slot claimed during the scan belongs to a thread that is just joining and counts as
 * having ticked. So only the thread that ticks last checks all threads.
 */
#include "gp/user/domain.h"
#include "gp/user/drive.h"
#include "gp/user/process_life.h"
#include "gp/user/readers.h"
#include "gp/user/slots.h"
#include "gp/user/stall.h"
#include "toolkit/domains/phases.h"

struct prudence_domain *gp_phases_make(const char *name)
{
    struct prudence_domain *domain = domain_make(name, PRUDENCE_DOMAIN_QSBR, &gp_memb);

    if (domain) {
        domain->phases = true;
        domain_publish(domain);
    }
    return domain;
}

/* Begins the phase after the one that just ended, if no thread has. Returns the present phase. */
static uint64_t present_phase(struct prudence_domain *domain)
{
    uint64_t completed = load_acquire(&domain->progress.completed);
    uint64_t phase = load_acquire(&domain->shared.sequence);

    /* On failure, another thread has begun the phase. */
    if (phase == completed &&
        compare_exchange(&domain->shared.sequence, &phase, completed + GP_STEP)) {
        phase = completed + GP_STEP;
        os_probe3(gp_start, domain, domain->name, phase);
    }
    return phase;
}

/* Fully fenced; see the head of this file. */
static void phases_publish(struct reader_slot *slot, uint64_t word)
{
    store_release(&slot->reader.word, word);
    os_full_fence();
}

bool gp_phases_join(struct prudence_domain *domain, bool ticked, uint64_t *phase)
{
    struct reader_slot *slot = readers_slot(domain);

    if (!slot)
        return false;
    *phase = present_phase(domain) - (ticked ? 0 : GP_STEP);
    phases_publish(slot, *phase | 1);
    return true;
}

/* If the thread has not ticked in the present phase, that phase cannot end now, so the
 * published phase is the present one. If the thread has ticked, this may publish an older phase
 * again; no tick is lost, because this one was surplus. */
uint64_t gp_phases_tick(struct prudence_domain *domain)
{
    struct reader_slot *slot = readers_slot_if_any(domain);
    uint64_t phase = present_phase(domain);

    gp_drive_tell_section_ends(domain);
    if (likely(slot != NULL)) /* NULL in a destructor of the last round of a thread's end */
        phases_publish(slot, phase | 1);
    return phase;
}

void gp_phases_leave(struct prudence_domain *domain)
{
    struct reader_slot *slot = readers_slot_if_any(domain);

    gp_drive_tell_section_ends(domain);
    if (slot)
        phases_publish(slot, 0);
}

void gp_phases_reap(struct prudence_domain *domain)
{
    slots_reap(domain, false, READERS_ALL);
}

/* Minimum time between checks of the thread that holds the phase up, because a check can cost a
 * system call. */
#define LOOK_PERIOD_NS 1000000

/* Notes the late thread for a stall report. A report calls the program's hook, so none is made
 * while the caller holds a lock, as a thread that leaves does. The next tick of any thread checks
 * again. */
static void note_late(struct prudence_domain *domain, struct reader_slot *slot, uint64_t word)
{
    uint64_t now = os_clock_ns();

    if (os_busy || now - load_relaxed(&domain->scan_began) < LOOK_PERIOD_NS)
        return;
    store_relaxed(&domain->scan_began, now);
    stall_note(domain, slot, word);
}

/* Returns whether all have ticked in the phase; notes a late thread for a stall report. */
static bool all_have_ticked(struct prudence_domain *domain, uint64_t phase)
{
    struct reader_chunk *chunk;
    struct reader_slot *slot;

    for_each_slot(chunk, slot, domain)
    {
        uint64_t word = load_acquire(&slot->reader.word);

        if (word && sequence_before(word & ~PRUDENCE_NESTING_MASK, phase)) {
            note_late(domain, slot, word);
            return false;
        }
    }
    return true;
}

bool gp_phases_advance(struct prudence_domain *domain)
{
    uint64_t phase = present_phase(domain), before = phase - GP_STEP;
    bool ended = all_have_ticked(domain, phase) &&
                 compare_exchange(&domain->progress.completed, &before, phase);

    if (ended) {
        add_relaxed(&domain->grace_periods, 1);
        os_probe4(gp_end, domain, domain->name, phase, 1);
        present_phase(domain);
    }
    return ended;
}

uint64_t gp_phases_ended(const struct prudence_domain *domain)
{
    return (load_acquire(&domain->progress.completed) - GP_FIRST) / GP_STEP;
}
