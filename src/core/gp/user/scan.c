/* SPDX-License-Identifier: MIT */
/*
 * Scans all awake readers of a memb or qsbr domain for the oldest section, after the caller's
 * barrier (memb.c, at_once.c).
 *
 * Locks: none. Any number of drivers scan at the same time.
 */
#include "gp/user/domain.h"
#include "gp/user/drive.h"
#include "gp/user/parking.h"
#include "gp/user/scan.h"
#include "gp/user/stall.h"

/* Release, because another thread may have mapped the slot's chunk, and a thread that finds the
 * slot here has not synchronized with that thread yet. */
static void note_behind(struct prudence_domain *domain, struct reader_slot *slot)
{
    if (load_relaxed(&domain->furthest_behind) != slot)
        store_release(&domain->furthest_behind, slot);
}

/* Returns the least of the goal and all active readers' sequences, and stores the number of readers
 * found outside. Calls `note` for each blocking reader. */
static inline uint64_t scan(struct prudence_domain *domain, uint64_t goal, unsigned *outside,
                            void (*note)(struct prudence_domain *, struct reader_slot *, uint64_t))
{
    struct reader_slot *slot, *behind = NULL;
    uint64_t least = goal;

    *outside = 0;
    for_each_awake(walk, slot, domain)
    {
        /* Acquire pairs with the release at exit, so the section's reads come before. */
        uint64_t word = load_acquire(&slot->reader.word);

        *outside += word == 0;
        if (word == 0 || !sequence_before(word & ~PRUDENCE_NESTING_MASK, goal))
            continue;
        if (note)
            note(domain, slot, word);
        if (!behind || sequence_before(word & ~PRUDENCE_NESTING_MASK, least)) {
            least = word & ~PRUDENCE_NESTING_MASK;
            behind = slot;
        }
    }
    note_behind(domain, behind);
    return least;
}

uint64_t scan_readers(struct prudence_domain *domain, uint64_t goal, unsigned *outside)
{
    return scan(domain, goal, outside, stall_note);
}

void scan_and_complete(struct prudence_domain *domain, uint64_t goal)
{
    unsigned outside;

    add_relaxed(&domain->scans, 1);
    gp_drive_complete(domain, scan(domain, goal, &outside, NULL));
}
