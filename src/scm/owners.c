/* SPDX-License-Identifier: MIT */
/*
 * Owners of stamps (stamps.h): a table of numbers. A clock takes one when it needs a page of descriptors and has
 * none; each page whose descriptors are made under it refers to it. A number with no reference is used again, so a
 * stamp never means two clocks.
 */
#include "scm/scm.h"

#define LOOKED_AT 8 /* numbers, before a new one is used */

struct owner *scm_owner_table;
static uint32_t used = 1, next = 1; /* numbers ever given out, and where to look; scm_lock */
uint32_t scm_owners = STAMP_OWNERS; /* numbers below this are given out; tests have fewer */

/* Under scm_lock, before the first thread enters. False: no memory. */
bool owners_start(void)
{
    if (!scm_owner_table)
        scm_owner_table = scm_meta_alloc(STAMP_OWNERS * sizeof *scm_owner_table);
    return scm_owner_table != NULL;
}

static void refer(uint32_t stamp)
{
    if (stamp_owner(stamp) != NO_OWNER)
        add_relaxed(&owner_of(stamp)->references, 1);
}

/* Release: what was read under the number comes before another clock's use of it (acquire: is_unused). */
static void refer_no_more(uint32_t stamp)
{
    if (stamp_owner(stamp) != NO_OWNER)
        __atomic_fetch_sub(&owner_of(stamp)->references, 1, __ATOMIC_RELEASE);
}

static bool is_unused(uint32_t number)
{
    return !load_acquire(&scm_owner_table[number].references);
}

/* Under scm_lock. 0: there is none. */
static uint32_t number_take(void)
{
    uint32_t end = (uint32_t)min_size(used, scm_owners);

    for (unsigned i = 0; i < LOOKED_AT && i + 1 < end; i++) {
        next = next + 1 < end ? next + 1 : 1;
        if (is_unused(next))
            return next;
    }
    return used < scm_owners ? used++ : 0;
}

/* Gives the clock, which has no owner, one if that is possible at once. The lock is only tried: a refresh never
 * waits. */
void clock_take_owner(struct scm_clock *clock)
{
    uint32_t number;

    if (clock->kind > GLOBAL_CLOCK || clock->mask >= STAMP_EPOCH || !os_lock_try(&scm_lock))
        return;
    number = number_take();
    if (number) {
        if (!clock->life)
            clock_begin_life(clock);
        store_relaxed(&scm_owner_table[number].life, clock->life);
        scm_owner_table[number].global = clock->kind == GLOBAL_CLOCK;
        clock->owner = STAMP_OF_OWNER(number);
        refer(clock->owner);
    }
    os_lock_release(&scm_lock);
}

/* Stamps under it go on with their pages. */
void clock_drop_owner(struct scm_clock *clock)
{
    refer_no_more(clock->owner);
    clock->owner = NO_OWNER;
}

/* Under scm_lock: some of the clock's lists go elsewhere, or it is new. */
void clock_begin_life(struct scm_clock *clock)
{
    static uint64_t lives;

    clock_drop_owner(clock);
    clock->life = ++lives;
}

/* The page is empty; `stamp` is of the descriptors that come. */
void page_set_stamp(struct page *page, uint32_t stamp)
{
    if (!stamps_share_owner(page->stamp, stamp)) {
        refer(stamp);
        refer_no_more(page->stamp);
    }
    page->stamp = stamp;
}
