/* SPDX-License-Identifier: MIT */
/*
 * Giving dates: a descriptor on the list of the date, and one more in the object's count. Constant
 * time; with lazy collection a few expired descriptors are processed on the way.
 *
 * A date that the object was just given on the same list is not given again: it would change nothing.
 *
 * The order: room for the descriptor and for the count is made first, so that what fails has changed
 * nothing. Expired descriptors are processed last: an object that is refreshed a little too late, when
 * its expired dates have not been processed, lives on.
 */
#include "scm/scm.h"

static __attribute__((noinline)) struct slab *find_slow(const void *object, const char *what)
{
    struct slab *slab = object_slab(object, what);

    return slab_terms_make(slab) ? slab : NULL;
}

/* The object's slab, which has words. NULL: there is no memory for them. */
static inline struct slab *find(const void *object, const char *what)
{
    struct slab *slab = slab_of(object);

    return likely(slab) && likely(slab_terms(slab)) ? slab : find_slow(object, what);
}

static inline void becomes_short_term(struct scm_thread *self, struct slab *slab)
{
    count_add(&slab->expiring, 1);
    count_add(&self->counts.became, 1);
}

static __attribute__((noinline, cold)) int too_many(const void *object, const char *what)
{
    os_report("%s: %p has %u expiration dates; no more are possible", what, object,
              (unsigned)TERM_DATES_MAX);
    return EOVERFLOW;
}

/* Where the next descriptor goes; NULL: there is no memory. */
static inline struct page *page_with_room(struct scm_thread *self, struct scm_clock *clock,
                                          struct page_list *list)
{
    struct page *page = list->last;

    return likely(page) && likely(page->count < PAGE_OBJECTS) ? page : page_add(self, clock, list);
}

static inline bool is_last(const struct page_list *list, const void *object)
{
    const struct page *page = list->last;

    return likely(page) && page->objects[page->count - 1] == object;
}

static inline int date_add(struct scm_thread *self, struct scm_clock *clock, struct page_list *list,
                           void *object, const char *what)
{
    struct slab *slab;
    struct page *page;
    uint32_t *term, dates;

    if (is_last(list, object))
        return 0;
    slab = find(object, what);
    if (unlikely(!slab))
        return ENOMEM;
    term = &slab_terms(slab)[slab_index(slab, object)];
    dates = term_dates(load_relaxed(term));
    if (unlikely(dates >= TERM_DATES_MAX))
        return too_many(object, what);
    if (!dates)
        slab_check_live(slab, object, slab_index(slab, object), what);
    page = page_with_room(self, clock, list);
    if (unlikely(!page))
        return ENOMEM;
    if (!term_dates(add_relaxed(term, 1)))
        becomes_short_term(self, slab);
    page->objects[page->count] = object;
    page->count++;
    count_add(&self->counts.dates, 1);
    return 0;
}

static __attribute__((noinline, cold)) int beyond_reach(unsigned extension, const void *object,
                                                        const char *what)
{
    os_report("%s: extension %u of %p is beyond the option scm_max_extension (%u)", what, extension,
              object, (unsigned)load_relaxed(&option_scm_max_extension));
    return ERANGE;
}

/* Of units: `extension` as the caller gave it, `more` that are added to it. One function for all that
 * refresh, which are left before it is begun. */
static __attribute__((noinline)) int refresh(struct scm_thread *self, struct scm_clock *clock,
                                             void *object, unsigned extension, unsigned more,
                                             const char *what)
{
    uint64_t units = (uint64_t)extension + more;
    int error;

    if (unlikely(extension > load_relaxed(&option_scm_max_extension)))
        return beyond_reach(extension, object, what);
    if (unlikely(units > clock->mask) && !clock_reach(clock, units))
        return ENOMEM;
    error = date_add(self, clock, &clock->ring[(clock->now + units) & clock->mask], object, what);
    collect_some(self);
    return error;
}

/* Of a thread that takes no part yet, or is blocked. */
static __attribute__((noinline, cold)) int
refresh_entering(int (*again)(void *, unsigned), void *object, unsigned extension, const char *what)
{
    int error = 0;

    if (!scm_enter(what, &error))
        return error;
    error = again(object, extension);
    scm_leave();
    return error;
}

int scm_refresh(void *object, unsigned extension)
{
    struct scm_thread *self = scm_self;

    if (unlikely(!object))
        return 0;
    if (unlikely(!self))
        return refresh_entering(scm_refresh, object, extension, "scm_refresh");
    return refresh(self, &self->local, object, extension, 0, "scm_refresh");
}

int scm_global_refresh(void *object, unsigned extension)
{
    struct scm_thread *self = scm_self;

    if (unlikely(!object))
        return 0;
    if (unlikely(!self))
        return refresh_entering(scm_global_refresh, object, extension, "scm_global_refresh");
    return refresh(self, &self->global, object, extension, 2, "scm_global_refresh");
}

/* The milliseconds in units, rounded up; UINT_MAX is beyond any option. */
static unsigned units_of(const struct scm_clock *clock, unsigned milliseconds)
{
    return (unsigned)(((uint64_t)milliseconds * 1000000 + clock->period - 1) / clock->period);
}

/* At the time that it is. Where it is in the way, a list of a date that has passed makes room. */
static int refresh_by_real_time(struct scm_thread *self, struct scm_clock *clock, void *object,
                                unsigned milliseconds)
{
    unsigned extension = units_of(clock, milliseconds);

    if (extension > load_relaxed(&option_scm_max_extension)) {
        os_report(
            "scm_clock_refresh: %u ms are %u periods of the clock; that is beyond the option "
            "scm_max_extension (%u; object %p)",
            milliseconds, extension, (unsigned)load_relaxed(&option_scm_max_extension), object);
        return ERANGE;
    }
    real_time_merge(self);
    real_time_follow(self, clock, scm_real_time(), LISTS_PER_CALL);
    if (!real_time_make_room(self, clock, extension))
        return ENOMEM;
    return refresh(self, clock, object, extension, 0, "scm_clock_refresh");
}

int scm_clock_refresh(struct scm_clock *handle, void *object, unsigned extension)
{
    struct scm_thread *self;
    struct scm_clock *clock;
    int error = clock_check(handle, "scm_clock_refresh", &self, &clock);
    uint64_t dates;

    if (error || !object)
        return error;
    dates = self->counts.dates;
    left_step_if_any(self);
    error = clock->kind == REAL_TIME_CLOCK
                ? refresh_by_real_time(self, clock, object, extension)
                : refresh(self, clock, object, extension, 0, "scm_clock_refresh");
    clock->dates += self->counts.dates - dates;
    return error;
}
