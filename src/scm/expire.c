/* SPDX-License-Identifier: MIT */
/*
 * What has expired: descriptors are taken in the order in which they were made. One whose object has a later
 * date by its stamp is queued again (stamps.h); each other one is one less in its object's count, and an object that has
 * none left is freed, unless its finalizer keeps it. If it is the first page of a region, the region ends (regions.c), and its
 * pages are freed after what has expired.
 *
 * The thread that takes the count to 0 is the only one that has the object then: nobody else has a
 * date for it, and who would give it one late has broken the rule that it may not have expired.
 */
#include "debug/annotate.h"
#include "race_detector.h"
#include "scm/regions.h"
#include "slab/gate.h"
#include "slab/misuse.h"

_Static_assert(TERM_FINALIZERS == SCM_FINALIZERS, "what is promised");
static int (*finalizers[TERM_FINALIZERS])(void *object); /* filled from the first; scm_lock */

int (*finalizer_of(unsigned number))(void *object)
{
    return load_acquire(&finalizers[number - 1]);
}

/* True when the object is to be freed. The finalizer may have given it new dates. Until it has returned the
 * object counts as kept: it may end the thread instead. */
static __attribute__((noinline)) bool finalize(struct scm_thread *self, uint32_t *term,
                                               void *object)
{
    bool nested = self->collecting, ends;

    self->collecting = true;
    count_add(&self->counts.kept, 1);
    annotate_taken(slab_known(object), object);
    os_foreign_call("a finalizer");
    ends = !finalizer_of(term_finalizer(load_relaxed(term)))(object) &&
           !term_dates(load_relaxed(term));
    self->collecting = nested;
    count_add(&self->counts.kept, (uint64_t)0 - ends);
    return ends;
}

/* Its word is 0, so its terms let it go. */
static void free_expired_slow(struct slab *slab, void *object, bool deferred)
{
    int saved_errno = errno;

    if (deferred)
        cache_free_deferred_slow(slab, object, "expiration");
    else
        cache_free_slow(slab, object, "expiration");
    errno = saved_errno;
}

static inline __attribute__((always_inline)) void free_expired(struct slab *slab, void *object)
{
    struct prudence_cache *cache = slab->cache;
    bool deferred = load_relaxed(&scm_deferred);

    if (likely(!deferred) && likely(cache_is_plain(cache)) && os_percpu_push(&cache->lines, object))
        return;
    annotate_taken(slab, object);
    free_expired_slow(slab, object, deferred);
}

/* Its word is 0. */
void object_expired(struct slab *slab, void *object)
{
    free_expired(slab, object);
}

static __attribute__((noinline, cold, noreturn)) void too_few(const struct slab *slab,
                                                              const void *object)
{
    os_report(
        "an expiration date of %p of cache '%s' was not counted: a thread refreshed the object "
        "while its last date ended; refresh it only while it has a date that cannot end",
        object, slab->cache->name);
    os_abort();
}

/*
 * One date less in the word, which is given as it was before; and no stamp, if the descriptor is the one behind it. True: it
 * was the last.
 *
 * A thread that finds that the object has 1 date, its own, which has expired, changes the word without an atomic
 * read-modify-write. No other thread may give the object a date meanwhile: it would have to have one
 * that has not expired, which counts; or, by global time, to have given it before its own tick, without
 * which this date would not have expired. Acquire and release: what other threads did with the object,
 * before they took theirs, is before what its next owner does.
 */
static inline bool date_is_last(const struct slab *slab, union term *term, uint64_t descriptor,
                                uint32_t *word)
{
    const void *object = object_of(descriptor);

    *word = load_acquire(&term->word);
    if (likely(term_dates(*word) == 1)) {
        store_relaxed(&term->both, (uint64_t)*word - 1);
        return true;
    }
    if (descriptor & BEHIND_STAMP)
        store_relaxed(&term->stamp, 0u);
    if (unlikely(race_detector_on)) /* to the thread whose date ends last: its annotate_taken */
        annotate_passes(slab, object);
    *word = __atomic_fetch_sub(&term->word, 1, __ATOMIC_ACQ_REL);
    if (unlikely(!term_dates(*word)))
        too_few(slab, object);
    return term_dates(*word) == 1;
}

static inline void date_end(struct scm_thread *self, struct slab *slab, union term *term,
                            uint64_t descriptor)
{
    void *object = object_of(descriptor);
    uint32_t word;

    if (!date_is_last(slab, term, descriptor, &word))
        return;
    count_add(&slab->may_leave, -1);
    count_add(&self->counts.ended, 1);
    if (unlikely(term_finalizer(word))) {
        if (term_finalizer(word) == TERM_REGION) {
            region_date_over(self, slab, object);
            return;
        }
        if (!finalize(self, &term->word, object))
            return;
        store_relaxed(&term->word, 0u);
    }
    free_expired(slab, object);
}

/* The first page has been taken to its end. Release: a thread that sees that it counts sees `begin` of the next,
 * so what is taken never seems more than it is (add_thread). */
static void page_end(struct scm_thread *self)
{
    struct page *page = self->expired.first;

    self->expired.first = page->next;
    store_relaxed(&self->begin, (uint64_t)0);
    store_release(&self->counts.taken, self->counts.taken + page->count);
    page_free(self, page);
    if (self->expired.first)
        return;
    self->expired.first = self->nothing;
    self->expired.last = NULL;
    ended_feed(self);
}

/* True: by its stamp the object has a date that is later than the descriptor's page. */
static inline bool lasts_longer(uint64_t descriptor, uint32_t stamp, const struct page *page)
{
    return (descriptor & BEHIND_STAMP) && stamp_lead(stamp, page->stamp) > 0;
}

/* Of a clock that still has the stamp's owner: the page for descriptors of that stamp, where the list has one. NULL: none, or
 * the date has passed. */
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
 * Descriptors of the first expired page, from `taken` on, whose objects last longer, are queued again at that date: as many
 * as go one after another to pages that have room, up to `most`. Returns how many.
 */
static __attribute__((noinline)) uint64_t follow(struct scm_thread *self, const struct page *page,
                                                 uint64_t taken, uint64_t most)
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
        uint32_t seen = load_relaxed(&term_of(object_of(descriptor))->stamp);

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

/* The descriptors before `taken` are done with. */
static inline void take_to(struct scm_thread *self, const struct page *page, uint64_t taken)
{
    store_relaxed(&self->begin, taken);
    if (taken == page->count)
        page_end(self);
}

/* Takes up to `most` descriptors and returns how many. 0: there is no memory to queue one again, and it stays the first. A
 * finalizer may call anything: the list is in order whenever date_end is called. */
static inline uint64_t take(struct scm_thread *self, uint64_t most)
{
    struct page *page = self->expired.first;
    uint64_t taken = self->begin, descriptor = page->descriptors[taken], followed;
    void *object = object_of(descriptor);
    struct slab *slab = slab_known(object);
    union term *term = &slab_terms(slab)[slab_index(slab, object)];
    enum following following = IS_OVER;

    if (lasts_longer(descriptor, load_relaxed(&term->stamp), page)) {
        followed = follow(self, page, taken, most);
        if (likely(followed)) {
            take_to(self, page, taken + followed);
            return followed;
        }
        following = stamp_follow(self, page, descriptor);
        if (unlikely(following == NO_MEMORY))
            return 0;
    }
    take_to(self, page, taken + 1);
    if (following == IS_OVER)
        date_end(self, slab, term, descriptor);
    return 1;
}

void expired_take(struct scm_thread *self, uint64_t count)
{
    uint64_t taken = 1, left;

    if (unlikely(self->collecting))
        return;
    if (unlikely(self->nothing != NULL))
        real_time_glance(self);
    for (left = count; left && taken && self->expired.last; left -= taken)
        taken = take(self, left);
    if (unlikely(self->nothing != NULL))
        regions_free_pages(self, count);
}

int scm_register_finalizer(int (*finalizer)(void *object))
{
    int number = -1;

    if (!finalizer) {
        os_report("scm_register_finalizer: the finalizer is NULL");
        errno = EINVAL;
        return -1;
    }
    os_lock_take(&scm_lock);
    for (int i = 0; i < TERM_FINALIZERS && number < 0; i++)
        number = finalizers[i] ? -1 : i;
    if (number >= 0)
        store_release(&finalizers[number], finalizer);
    os_lock_release(&scm_lock);
    if (number < 0) {
        os_report("scm_register_finalizer: there are %d already", TERM_FINALIZERS);
        errno = ENOSPC;
    }
    return number;
}

int scm_set_finalizer(void *object, int number)
{
    struct slab *slab = object_slab(object, "scm_set_finalizer");
    union term *terms;
    uint32_t *term, word;

    if (number < -1 || number >= TERM_FINALIZERS || (number >= 0 && !finalizer_of(number + 1))) {
        os_report("scm_set_finalizer: there is no finalizer %d (object %p)", number, object);
        return EINVAL;
    }
    terms = slab_terms_make(slab);
    if (!terms)
        return ENOMEM;
    term = &terms[slab_index(slab, object)].word;
    word = load_relaxed(term);
    if (!term_dates(word))
        slab_check_live(slab, object, "scm_set_finalizer");
    /* Dates may come and go meanwhile. */
    while (!compare_exchange(term, &word,
                             term_dates(word) | (uint32_t)(number + 1) << TERM_DATES_BITS))
        ;
    return 0;
}
