/* SPDX-License-Identifier: MIT */
/*
 * Follows stamps. An expired descriptor whose object has a later date in the stamp is queued again
 * at that date (stamps.h).
 */
#include "shortterm/scm.h"

/* Returns the page for descriptors of the stamp, of a clock that still has the stamp's owner.
 * Returns NULL if the list has no such page or the date has passed. */
static inline struct page *page_to_follow(const struct scm_clock *clock, const struct page *from,
                                          uint32_t stamp)
{
    uint64_t date = from->date + (uint64_t)stamp_lead(stamp, from->stamp);
    struct page *page = clock->ring[date & clock->mask].last;

    if ((int64_t)(date - clock->now) < 0 || !page || page->stamp != stamp)
        return NULL;
    return page;
}

/*
 * Queues descriptors of the first expired page again, from `taken` on, whose objects last longer.
 * Stops at the first that does not, that finds no room in a page for the date, or after `most`.
 * Returns the number of queued descriptors.
 */
uint64_t stamps_follow(struct scm_thread *self, const struct page *page, uint64_t taken,
                       uint64_t most)
{
    struct scm_clock *clock =
        stamps_share_owner(page->stamp, self->local.owner) ? &self->local : &self->global;
    uint64_t end = most < page->count - taken ? taken + most : page->count, i = taken;
    uint32_t stamp = page->stamp;
    struct page *to = NULL;

    if (!stamps_share_owner(stamp, clock->owner))
        return 0;
    for (; i < end; i++) {
        uint64_t descriptor = page->descriptors[i];
        uint32_t seen = load_relaxed(&expiry_count_of(object_of(descriptor))->stamp);

        if (!lasts_longer(descriptor, seen, page))
            break;
        if (seen != stamp)
            to = page_to_follow(clock, page, seen);
        if (!to || to->count == PAGE_OBJECTS)
            break;
        stamp = seen;
        to->descriptors[to->count] = descriptor;
        to->count++;
    }
    clock->dates += i - taken;
    count_add(&self->counts.dates, i - taken);
    return i - taken;
}

/* Finds the clock and the date at which to queue a descriptor whose stamp is later than the page.
 * Returns false if that date is over. */
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
    /* The page's date has passed; now - 1 is the latest that it can be. */
    *date = (*clock)->now + (uint64_t)lead - 1;
    return true;
}

/*
 * Does the same as stamps_follow in every case, for one descriptor of an expired page, whose object
 * has a later date in the stamp. Allocating may run destructors, which may refresh the object but
 * not collect, so the descriptor is still the first that has expired. If the clock has no owner,
 * the descriptor becomes an ordinary one, and the object loses the stamp.
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
