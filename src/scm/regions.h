/* SPDX-License-Identifier: MIT */
/*
 * Private to scm/: regions. Objects are cut from pages by moving a pointer, and end together.
 *
 *   region       what a handle stands for (places.h): where the next object is cut, and the first page
 *   region_page  the head of each page: the next page, and the region's handle
 *
 * A region's dates are those of its first page, which is an object of a slab cache like any other. Its expiry count
 * has EXPIRY_COUNT_REGION in place of a finalizer, so the end of its last date ends the region (expire.c).
 *
 * Whose. The thread whose number is `owner` allocates and unregisters; no other thread writes the region until it
 * ends, except that it sets `others`. The thread that ends it is alone with it: the one that takes its last date, or the owner that unregisters it
 * without dates. That thread has it in its list of ended regions, frees its pages a few at each call, and then has
 * its place.
 *
 * Invariants: `first` is NULL unless the region is alive: the handle is good exactly then. cursor and end are
 * multiples of REGION_ALIGNMENT; while a region is alive both are NULL when nothing more is to be allocated. Nothing
 * is written to a page of an ended region: with scm_expired=deferred readers may still be in it.
 */
#ifndef SCM_REGIONS_H
#define SCM_REGIONS_H

#include "scm/scm.h"

#define REGION_ALIGNMENT  ((size_t)16)
#define REGION_SMALL      ((size_t)4096)
#define REGION_BIG        OBJECT_SIZE_MAX
#define REGION_SMALLS     8          /* so many pages of a region are small, then they are big */
#define REGION_AHEAD_MAX  (1u << 20) /* ticks: the largest scm_max_extension */
#define REGION_FOR_EVER   (1u << 30) /* ticks: no local date is known */
#define REGION_PAGES_CALL 4          /* pages that a call frees, unless ticks do */

struct region_page {
    struct region_page *next;
    uint64_t handle;
};
_Static_assert(sizeof(struct region_page) == REGION_ALIGNMENT, "the first object is aligned");

struct region {
    uint64_t handle; /* the last one given out; atomic */
    uint64_t owner;  /* a thread's number; atomic */
    union {
        char *cursor;              /* where the next object is cut */
        struct region_page *going; /* ended: the next page to be freed */
    };
    char *end;
    struct region_page *first; /* atomic */
    uint32_t good_until; /* the owner's local time, its lowest bits: alive until then for certain */
    uint8_t pages;       /* taken, up to REGION_SMALLS */
    bool
        others; /* it got a date that is not by the owner's local clock; written by any thread, atomic */
    struct list link; /* ended, or unused places: of a thread or of all */
};
_Static_assert(sizeof(struct region) == CACHE_LINE,
               "a place is found by a shift, and is nobody else's line");

extern HIDDEN struct places region_places;

/* NULL: no such place. Whether the handle is good is to be asked. */
static inline struct region *region_at(const struct scm_region *handle)
{
    return places_at(&region_places, (uint32_t)(uintptr_t)handle, sizeof(struct region));
}

static inline bool handle_is(const struct region *region, const struct scm_region *handle)
{
    return load_relaxed(&region->handle) == (uint64_t)(uintptr_t)handle;
}

/* By the owner: the region lives until the end of the thread's local time + extension. */
static inline void region_note_date(struct region *region, const struct scm_thread *self,
                                    unsigned extension)
{
    uint32_t now = (uint32_t)self->local.now, ahead = region->good_until - now;

    if (ahead > REGION_AHEAD_MAX || ahead < extension)
        region->good_until = now + extension;
}

/* By any thread, before it gives the region a date that region_note_date is not told of. */
static inline void region_note_others(struct region *region)
{
    if (!load_relaxed(&region->others))
        store_relaxed(&region->others, true);
}

/* Its thread was not copied by fork: the region's memory, as the child has it, may be inconsistent. */
static inline bool region_is_abandoned(const struct scm_thread *self, const struct region *region)
{
    uint64_t owner = load_relaxed(&region->owner);

    return self->number != owner && scm_is_abandoned(owner);
}

/* --- region_places.c --- */
struct region *region_place_take(struct scm_thread *self);
void region_place_give_back(struct scm_thread *self, struct region *region);
void region_places_leave(struct scm_thread *thread);

/* --- region_end.c --- */
void region_end(struct scm_thread *self, struct region *region);
void region_date_over(struct scm_thread *self, struct slab *slab, void *page);
void regions_free_pages(struct scm_thread *self, uint64_t count);

/* --- regions.c --- */
int region_check(struct scm_region *handle, const char *what, struct region **region);
struct region *region_holding(const void *object, const char *what);
const void *region_or_object(const void *object);

#endif /* SCM_REGIONS_H */
