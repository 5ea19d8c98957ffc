/* SPDX-License-Identifier: MIT */
/*
 * Owners of stamps (stamps.h): a table of numbers. A clock takes one when it needs a page of descriptors and has none;
 * each page that has descriptors made under it refers to it. A number with no reference is used again; so a stamp never
 * means two clocks.
 *
 * A life is a clock in the hands of one thread after another, each of which has all its lists. It ends when another
 * thread takes a part of them; from then on its dates there are counted by that thread's clock, and pages under its
 * owners say by how much a stamp is later than the page, no longer when that is.
 */
#include "scm/stamps.h"

#include "scm/scm.h"

#define LOOKED_AT 8 /* numbers, before a new one is used */

struct owner {
    uint32_t references; /* the clock's, and each page's; atomic */
    bool
        global; /* it stands for a global clock; with `life`, written before any page refers to it */
    uint64_t life;
};

/* STAMP_OWNERS of them; the first is not used: 0 is no owner. Made before any thread has entered, then constant. */
static struct owner *owners;
static uint32_t used = 1, next = 1; /* numbers ever given out, and where to look; scm_lock */
uint32_t scm_owners = STAMP_OWNERS; /* numbers below this are given out; tests have fewer */

/* Under scm_lock, before the first thread enters. False: no memory. */
bool stamps_start(void)
{
    if (!owners)
        owners = scm_meta_alloc(STAMP_OWNERS * sizeof *owners);
    return owners != NULL;
}

static struct owner *owner_of(uint32_t stamp)
{
    return &owners[stamp >> STAMP_DATE_BITS];
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
    return !load_acquire(&owners[number].references);
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

/* The clock, which has no owner, gets one if there is one at once. The lock is only tried: a refresh never waits. */
void clock_take_owner(struct scm_clock *clock)
{
    uint32_t number;

    if (clock->kind > GLOBAL_CLOCK || clock->mask >= STAMP_EPOCH || !os_lock_try(&scm_lock))
        return;
    number = number_take();
    if (number) {
        if (!clock->life)
            clock_begin_life(clock);
        owners[number].life = clock->life;
        owners[number].global = clock->kind == GLOBAL_CLOCK;
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

/* Where and when the descriptor behind a stamp, which is later than its page, is to stand. False: that is over. */
static bool later_date(struct scm_thread *self, const struct page *page, uint32_t seen,
                       struct scm_clock **clock, uint64_t *date)
{
    const struct owner *owner = owner_of(seen);
    int32_t lead = stamp_lead(seen, page->stamp);

    *clock = owner->global ? &self->global : &self->local;
    if (owner->life == (*clock)->life) {
        *date = page->date + (uint64_t)lead;
        return (int64_t)(*date - (*clock)->now) >= 0;
    }
    *date = (*clock)->now + (uint64_t)lead -
            1; /* the page's date has passed, before now at the latest */
    return true;
}

/*
 * As follow (expire.c), in all cases: a descriptor of an expired page, whose object has a later date by its stamp, is queued
 * at that date. Allocating may run destructors, which may refresh the object, but not collect: the descriptor is still the
 * first that has expired. Of a clock without owner the descriptor is as any other, and the object has no stamp any more.
 */
enum following stamp_follow(struct scm_thread *self, const struct page *page, uint64_t descriptor)
{
    uint32_t *stamp = &expiry_count_of(object_of(descriptor))->stamp, seen = load_relaxed(stamp),
             owner;
    bool collecting = self->collecting, same_dates;
    struct scm_clock *clock;
    struct page *to;
    uint64_t date;

    if (!later_date(self, page, seen, &clock, &date))
        return IS_OVER;
    if (date - clock->now > clock->mask && !clock_reach(clock, date - clock->now))
        return NO_MEMORY;
    same_dates = owner_of(seen)->life == clock->life;
    self->collecting = true;
    to = page_with_room(self, clock, date);
    self->collecting = collecting;
    if (!to)
        return NO_MEMORY;
    owner = stamp_owner(to->stamp);
    if (owner == NO_OWNER)
        descriptor &= ~BEHIND_STAMP;
    page_put(self, clock, to, descriptor);
    store_relaxed(stamp,
                  owner == NO_OWNER ? 0 : stamp_of(owner, same_dates ? load_relaxed(stamp) : date));
    return FOLLOWED;
}

/* The page's descriptors go to another one, and leave the stamps. False: one of them has a later date by its stamp. */
bool page_leave_stamps(struct page *page)
{
    for (uint32_t i = 0; i < page->count; i++) {
        uint32_t *stamp = &expiry_count_of(object_of(page->descriptors[i]))->stamp;

        if (!(page->descriptors[i] & BEHIND_STAMP))
            continue;
        if (stamp_lead(load_relaxed(stamp), page->stamp) > 0)
            return false;
        store_relaxed(stamp, 0u);
        page->descriptors[i] &= ~BEHIND_STAMP;
    }
    return true;
}
