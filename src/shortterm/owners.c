/* SPDX-License-Identifier: MIT */
/*
 * A table of the owners of stamps (stamps.h), which are numbers. A clock takes one when it needs a
 * page of descriptors and has none. Each page refers to the owner of the descriptors. A number
 * without references is reused, so a stamp never means two clocks.
 */
#include "shortterm/scm.h"

#define LOOKED_AT 8 /* numbers tried before a new one is used */

struct owner *scm_owner_table;
static uint32_t used = 1, next = 1; /* numbers given out so far, and last one tried; scm_lock */
uint32_t scm_owners = STAMP_OWNERS; /* only lower numbers are given out; tests lower it */

/* Makes the table, under scm_lock, before the first thread enters. Returns false if there is no
 * memory. */
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

/* Drops a reference. Release order puts reads under the number before the next clock's use (acquire
 * in is_unused). */
static void refer_no_more(uint32_t stamp)
{
    if (stamp_owner(stamp) != NO_OWNER)
        __atomic_fetch_sub(&owner_of(stamp)->references, 1, __ATOMIC_RELEASE);
}

static bool is_unused(uint32_t number)
{
    return !load_acquire(&scm_owner_table[number].references);
}

/* Returns an unused number, or 0 if there is none. Called under scm_lock. */
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

/* Gives an owner to a clock without one, if that is possible at once. Only tries the lock, because
 * a refresh never waits. */
void owner_attach_clock(struct scm_clock *clock)
{
    uint32_t number;

    if (clock->kind > GLOBAL_CLOCK || clock->mask >= STAMP_EPOCH || !os_lock_try(&scm_lock))
        return;
    number = number_take();
    if (number) {
        if (!clock->life)
            owner_begin_clock_life(clock);
        store_relaxed(&scm_owner_table[number].life, clock->life);
        scm_owner_table[number].global = clock->kind == GLOBAL_CLOCK;
        clock->owner = STAMP_OF_OWNER(number);
        refer(clock->owner);
    }
    os_lock_release(&scm_lock);
}

/* Detaches the clock from the owner. Pages keep the owner alive for existing stamps. */
void owner_detach_clock(struct scm_clock *clock)
{
    refer_no_more(clock->owner);
    clock->owner = NO_OWNER;
}

/* Begins a new life of a clock that is new or loses lists to another thread. Called under
 * scm_lock. */
void owner_begin_clock_life(struct scm_clock *clock)
{
    static uint64_t lives;

    owner_detach_clock(clock);
    clock->life = ++lives;
}

/* Sets the stamp of an empty page, for the descriptors that follow. */
void owner_stamp_page(struct page *page, uint32_t stamp)
{
    if (!stamps_share_owner(page->stamp, stamp)) {
        refer(stamp);
        refer_no_more(page->stamp);
    }
    page->stamp = stamp;
}
