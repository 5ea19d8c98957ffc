/* SPDX-License-Identifier: MIT */
/*
 * Gives dates to objects. If the object's stamp belongs to the clock, the stamp gets a later date
 * (stamps.h). Otherwise a descriptor is put on the list of the date, and the object's count is
 * raised by one. Takes constant time; with lazy collection a few expired descriptors are processed
 * too.
 *
 * A date that the object was just given on the same list is not given again, because nothing would
 * change.
 *
 * Room for the descriptor and for the count is made first, so that a failure changes nothing.
 * Expired descriptors are processed last, so an object that is refreshed a little too late, before
 * its expired dates have been processed, lives on.
 *
 * A refresh of an object in a region, which is no object of the allocator, refreshes the region's
 * first page, and so the region.
 */
#include "guard/annotate.h"
#include "shortterm/regions.h"
#include "slab/misuse.h"

static const char *refresh_name(const struct scm_clock *clock)
{
    if (clock->kind > GLOBAL_CLOCK)
        return "scm_clock_refresh";
    return clock->kind == LOCAL_CLOCK ? "scm_refresh" : "scm_global_refresh";
}

static inline void becomes_short_term(struct scm_thread *self, struct slab *slab)
{
    count_add(&slab->may_leave, 1);
    count_add(&self->counts.became, 1);
}

static __attribute__((noinline, cold)) int too_many(const struct scm_clock *clock,
                                                    const void *object)
{
    os_report("%s: %p has %u expiration dates; no more are possible", refresh_name(clock),
              region_or_object(object), (unsigned)EXPIRY_COUNT_MAX);
    return EOVERFLOW;
}

static inline bool is_last(const struct page_list *list, const void *object)
{
    const struct page *page = list->last;

    return page && object_of(page->descriptors[page->count - 1]) == object;
}

/* Checks an object at the first date, if the slab has extensions or the object may be dead. */
static __attribute__((noinline)) void first_date(const struct scm_clock *clock,
                                                 const struct slab *slab,
                                                 union expiry_count *expiry, void *object)
{
    suspect_check_live(slab, expiry, object, refresh_name(clock));
    annotate_held(slab, object);
}

/* Adds a date, and the stamp if the object has none, in one operation, so that there is never a
 * stamp without a date. Returns the descriptor, and sets *first if this is the first date of the
 * object. */
static inline uint64_t expiry_count_add(union expiry_count *expiry, uint32_t stamp, void *object,
                                        bool *first)
{
    uint64_t seen = load_relaxed(&expiry->both), descriptor = (uintptr_t)object;

    while (likely(stamp_owner(stamp) != NO_OWNER) && !(seen >> 32)) {
        if (compare_exchange(&expiry->both, &seen, (seen + 1) | (uint64_t)stamp << 32)) {
            *first = !expiry_count_dates((uint32_t)seen);
            return descriptor | BEHIND_STAMP;
        }
    }
    *first = !expiry_count_dates(add_relaxed(&expiry->word, 1));
    return descriptor;
}

static inline int date_add(struct scm_thread *self, struct scm_clock *clock, uint64_t date,
                           struct slab *slab, union expiry_count *expiry, void *object)
{
    uint32_t word = load_relaxed(&expiry->word), dates = expiry_count_dates(word);
    struct page *page;
    bool first;

    if (!dates && unlikely(expiry_count_is_suspect(word) ||
                           slab_may_be_dead(slab, (unsigned)(expiry - expiry_counts_in(slab)),
                                            EXTENSION_BIT(EXPIRY_COUNTS_EXTENSION))))
        first_date(clock, slab, expiry, object);
    if (unlikely(dates) && is_last(&clock->ring[date & clock->mask], object))
        return 0;
    if (unlikely(dates >= EXPIRY_COUNT_MAX))
        return too_many(clock, object);
    page = page_with_room(self, clock, date);
    if (unlikely(!page))
        return ENOMEM;
    page_put(self, clock, page, expiry_count_add(expiry, page->stamp, object, &first));
    if (first)
        becomes_short_term(self, slab);
    return 0;
}

/* Gives a date by a descriptor, because the object's stamp is not the clock's. */
static __attribute__((noinline)) int date_add_and_collect(struct scm_thread *self,
                                                          struct scm_clock *clock, uint64_t date,
                                                          struct slab *slab,
                                                          union expiry_count *expiry, void *object)
{
    int error = date_add(self, clock, date, slab, expiry, object);

    collect_some(self);
    return error;
}

static __attribute__((noinline)) int collect_and_succeed(struct scm_thread *self)
{
    expired_take(self, TAKEN_PER_CALL);
    return 0;
}

/*
 * Gives a date within reach of the clock's ring. For an object that the clock has stamped, this
 * calls no function, unless something waits. Only the thread whose clock owns the stamp writes it
 * (stamps.h), so no atomic read-modify-write is needed.
 */
static inline int date_give(struct scm_thread *self, struct scm_clock *clock, uint64_t date,
                            struct slab *slab, union expiry_count *counts, void *object)
{
    union expiry_count *expiry = &counts[slab_index(slab, object)];
    uint32_t stamp = stamp_of(clock->owner, date), seen = load_relaxed(&expiry->stamp);

    if (!stamps_share_owner(seen, stamp))
        return date_add_and_collect(self, clock, date, slab, expiry, object);
    if (stamp_lead(stamp, seen) > 0)
        store_relaxed(&expiry->stamp, stamp);
    return unlikely(something_waits(self)) ? collect_and_succeed(self) : 0;
}

static int beyond_reach(const struct scm_clock *clock, unsigned extension, const void *object)
{
    os_report("%s: extension %u of %p is beyond the option scm_max_extension (%u)",
              refresh_name(clock), extension, region_or_object(object),
              (unsigned)load_relaxed(&scm_max_extension));
    return ERANGE;
}

static int refresh_region(struct scm_thread *self, struct scm_clock *clock, struct region *region,
                          unsigned extension, unsigned more);

/* Slow path for an unusual extension, ring, object or slab. */
static __attribute__((noinline, cold)) int refresh_slow(struct scm_thread *self,
                                                        struct scm_clock *clock, void *object,
                                                        unsigned extension, unsigned more)
{
    uint64_t units = (uint64_t)extension + more;
    struct slab *slab;
    union expiry_count *counts;

    if (extension > load_relaxed(&scm_max_extension))
        return beyond_reach(clock, extension, object);
    if (!slab_of(object)) {
        struct region *region = region_holding(object, refresh_name(clock));

        if (region)
            return refresh_region(self, clock, region, extension, more);
    }
    slab = object_slab(object, refresh_name(clock));
    counts = expiry_counts_make(slab);
    if (!counts || (units > clock->mask && !clock_reach(clock, units))) {
        collect_some(self);
        return ENOMEM;
    }
    return date_give(self, clock, clock->now + units, slab, counts, object);
}

/* Gives a date `extension` (from the caller) plus `more` units ahead. */
static inline __attribute__((always_inline)) int refresh(struct scm_thread *self,
                                                         struct scm_clock *clock, void *object,
                                                         unsigned extension, unsigned more)
{
    uint64_t units = (uint64_t)extension + more;
    struct slab *slab = slab_of(object);
    union expiry_count *counts = likely(slab) ? expiry_counts_in(slab) : NULL;

    if (unlikely(!counts) || unlikely(units > clock->mask) ||
        unlikely(extension > load_relaxed(&scm_max_extension)))
        return refresh_slow(self, clock, object, extension, more);
    return date_give(self, clock, clock->now + units, slab, counts, object);
}

static int refresh_region(struct scm_thread *self, struct scm_clock *clock, struct region *region,
                          unsigned extension, unsigned more)
{
    bool own = clock == &self->local && load_relaxed(&region->owner) == self->number;
    bool collecting = self->collecting;
    uint32_t date = (uint32_t)clock->now + extension;
    int error;

    if (!own)
        region_note_others(region);
    self->collecting = true; /* a finalizer might end the region before the date is noted */
    error = refresh(self, clock, load_relaxed(&region->first), extension, more);
    self->collecting = collecting;
    if (!error)
        store_relaxed(&region->dated, true); /* only this thread can end the date */
    if (!error && own)
        region_note_date(region, self, date);
    collect_some(self);
    return error;
}

/* Refreshes for a thread that takes no part yet or is blocked. */
static __attribute__((noinline, cold)) int
refresh_entering(int (*again)(void *, unsigned), void *object, unsigned extension, const char *what)
{
    int error = 0;

    if (!scm_thread_enter(what, &error))
        return error;
    error = again(object, extension);
    scm_thread_leave();
    return error;
}

int scm_refresh(void *object, unsigned extension)
{
    struct scm_thread *self = scm_self;

    if (unlikely(!object))
        return 0;
    if (unlikely(!self))
        return refresh_entering(scm_refresh, object, extension, "scm_refresh");
    return refresh(self, &self->local, object, extension, 0);
}

int scm_global_refresh(void *object, unsigned extension)
{
    struct scm_thread *self = scm_self;

    if (unlikely(!object))
        return 0;
    if (unlikely(!self))
        return refresh_entering(scm_global_refresh, object, extension, "scm_global_refresh");
    return refresh(self, &self->global, object, extension, 2);
}

/* Converts milliseconds to units, rounded up. UINT_MAX exceeds any option. */
static unsigned units_of(const struct scm_clock *clock, unsigned milliseconds)
{
    return narrow(unsigned, ((uint64_t)milliseconds * 1000000 + clock->period - 1) / clock->period);
}

/* Refreshes by the present time of the clock. Sweeps a list of a passed date that is blocking. */
static int refresh_by_real_time(struct scm_thread *self, struct scm_clock *clock, void *object,
                                unsigned milliseconds)
{
    unsigned extension = units_of(clock, milliseconds);

    if (extension > load_relaxed(&scm_max_extension)) {
        os_report(
            "scm_clock_refresh: %u ms are %u periods of the clock; that is beyond the option "
            "scm_max_extension (%u; object %p)",
            milliseconds, extension, (unsigned)load_relaxed(&scm_max_extension),
            region_or_object(object));
        return ERANGE;
    }
    left_merge_real_time(self);
    real_time_follow(self, clock, scm_real_time(), LISTS_PER_CALL);
    if (!real_time_make_room(self, clock, extension))
        return ENOMEM;
    return refresh(self, clock, object, extension, 0);
}

static int refresh_by_clock(struct scm_thread *self, struct scm_clock *clock, void *object,
                            unsigned extension)
{
    left_step_if_any(self);
    if (clock->kind == REAL_TIME_CLOCK)
        return refresh_by_real_time(self, clock, object, extension);
    return refresh(self, clock, object, extension, 0);
}

int scm_clock_refresh(struct scm_clock *handle, void *object, unsigned extension)
{
    struct scm_thread *self;
    struct scm_clock *clock;
    int error = clock_call_check(handle, "scm_clock_refresh", &self, &clock);

    return error || !object ? error : refresh_by_clock(self, clock, object, extension);
}

/* ------------------------------------------------------------------------------------- regions */

static int region_refresh(void *handle, unsigned extension)
{
    struct scm_thread *self = scm_self;
    struct region *region;
    int error;

    if (unlikely(!self))
        return refresh_entering(region_refresh, handle, extension, "scm_region_refresh");
    error = region_check(handle, "scm_region_refresh", &region);
    return error ? error : refresh_region(self, &self->local, region, extension, 0);
}

int scm_region_refresh(struct scm_region *handle, unsigned extension)
{
    return region_refresh(handle, extension);
}

static int region_global_refresh(void *handle, unsigned extension)
{
    struct scm_thread *self = scm_self;
    struct region *region;
    int error;

    if (unlikely(!self))
        return refresh_entering(region_global_refresh, handle, extension,
                                "scm_region_global_refresh");
    error = region_check(handle, "scm_region_global_refresh", &region);
    return error ? error : refresh_region(self, &self->global, region, extension, 2);
}

int scm_region_global_refresh(struct scm_region *handle, unsigned extension)
{
    return region_global_refresh(handle, extension);
}

int scm_region_clock_refresh(struct scm_clock *clock_handle, struct scm_region *handle,
                             unsigned extension)
{
    static const char what[] = "scm_region_clock_refresh";
    struct scm_thread *self;
    struct scm_clock *clock;
    struct region *region;
    int error = clock_call_check(clock_handle, what, &self, &clock);

    if (!error)
        error = region_check(handle, what, &region);
    if (error)
        return error;
    /* The first object of the region, which refresh_slow passes to refresh_region. */
    return refresh_by_clock(self, clock, load_relaxed(&region->first) + 1, extension);
}
