/* SPDX-License-Identifier: MIT */
/*
 * Regions, private to scm/. Objects are cut from pages by moving a pointer, and end together.
 *
 *   region       the structure of a handle (places.h), with the cut position and the first page
 *   region_page  the head of each page, with the next page and the region's handle
 *
 * A region's dates are the dates of the first page, which is an object of a slab cache like any
 * other. The page's expiry count has EXPIRY_COUNT_REGION in place of a finalizer, so the end of the
 * last date ends the region (expire.c).
 *
 * The thread whose number is `owner` allocates and unregisters. No other thread writes the region
 * until it ends, except to set `others` and `dated`. The thread that takes the last date, or the
 * owner that unregisters a region that never had one, ends it and is alone with it. That thread
 * puts the region on its list of ended regions, frees a few pages at each call, and then reuses the
 * place.
 *
 * Invariants: the region is alive, and the handle good, exactly while `owner` is not 0. cursor and
 * end are multiples of REGION_ALIGNMENT. Nothing is written to a page of an ended region, because
 * with scm_expired=deferred readers may still be in it.
 */
#ifndef SHORTTERM_REGIONS_H
#define SHORTTERM_REGIONS_H

#include "shortterm/scm.h"

#define REGION_ALIGNMENT  ((size_t)16)
#define REGION_SMALL      ((size_t)4096)
#define REGION_BIG        ((size_t)32768)
#define REGION_SMALLS     8          /* the first pages of a region are small, later ones big */
#define REGION_AHEAD_MAX  (1u << 20) /* ticks; the largest scm_max_extension */
#define REGION_FOR_EVER   (1u << 30) /* ticks; no local date is known */
#define REGION_PAGES_CALL 4          /* pages that a call frees, unless ticks do */
#define REGION_CLOSED     (UINT64_C(1) << 63) /* in `owner`, which has unregistered the region */

struct region_page {
    struct region_page *next;
    uint64_t handle;
};
_Static_assert(sizeof(struct region_page) == REGION_ALIGNMENT, "the first object is aligned");

struct region {
    uint64_t handle; /* the last one given out; atomic */
    uint64_t owner;  /* a thread's number, perhaps with REGION_CLOSED; 0 after the end; atomic */
    char *cursor;    /* address of the next object */
    char *end;
    struct region_page *first; /* after the end, the next page to free; atomic */
    /* The region is certainly alive until then (lowest bits of the owner's local time). */
    uint32_t good_until;
    uint8_t pages; /* number of pages, up to REGION_SMALLS */
    /* The region got a date that is not by the owner's local clock. Any thread writes this;
     * atomic. */
    bool others;
    bool dated;       /* the region has a date, or is ending; any thread sets this; atomic */
    struct list link; /* in a list of ended regions or of unused places */
};
_Static_assert(sizeof(struct region) == CACHE_LINE,
               "a place is found by a shift, and is no other thread's line");

extern HIDDEN struct places region_places;

/* Returns the place of a handle, or NULL if there is none. The caller checks whether the handle is
 * good. */
static inline struct region *region_at(const struct scm_region *handle)
{
    return places_at(&region_places, (uint32_t)(uintptr_t)handle, sizeof(struct region));
}

static inline bool handle_is(const struct region *region, const struct scm_region *handle)
{
    return load_relaxed(&region->handle) == (uint64_t)(uintptr_t)handle;
}

/* Returns `owner` of the region that the handle was given out for, or 0 if that region has ended.
 * Acquire pairs with region_begin, which stores `owner` after all else: a thread that reads the
 * owner of a later region reads the later handle. */
static inline uint64_t region_owner(const struct region *region, const struct scm_region *handle)
{
    uint64_t owner = load_acquire(&region->owner);

    return handle_is(region, handle) ? owner : 0;
}

/* Notes that the region lives until `date` of the thread's local clock. Called by the owner. The
 * clock may have passed the date already. */
static inline void region_note_date(struct region *region, const struct scm_thread *self,
                                    uint32_t date)
{
    uint32_t ahead = region->good_until - (uint32_t)self->local.now;

    if (ahead > REGION_AHEAD_MAX || (int32_t)(date - region->good_until) > 0)
        region->good_until = date;
}

/* Called by any thread before it gives the region a date without region_note_date. */
static inline void region_note_others(struct region *region)
{
    if (!load_relaxed(&region->others))
        store_relaxed(&region->others, true);
}

/* Returns whether fork did not copy the owner, so the region's memory in the child may be
 * inconsistent. */
static inline bool region_is_abandoned(const struct scm_thread *self, uint64_t owner)
{
    uint64_t number = owner & ~REGION_CLOSED;

    return self->number != number && registry_has_abandoned(number);
}

/* --- region_places.c --- */
struct region *region_place_take(struct scm_thread *self);
void region_place_give_back(struct scm_thread *self, struct region *region);
void region_places_leave(struct scm_thread *thread);

/* --- region_end.c --- */
void region_end(struct scm_thread *self, struct region *region);
void region_end_expired(struct scm_thread *self, struct slab *slab, void *page);
void region_end_free_pages(struct scm_thread *self, uint64_t count);

/* --- regions.c --- */
int region_check(struct scm_region *handle, const char *what, struct region **region);
struct region *region_holding(const void *object, const char *what);
const void *region_or_object(const void *object);

#endif /* SHORTTERM_REGIONS_H */
