/* SPDX-License-Identifier: MIT */
/*
 * What has expired: descriptors are taken in the order in which they were made, each is one less in
 * its object's count, and an object that has none left is freed, unless its finalizer keeps it.
 *
 * The thread that takes the count to 0 is the only one that has the object then: nobody else has a
 * date for it, and who would give it one late has broken the rule that it may not have expired.
 */
#include "heap/annotate.h"
#include "race_detector.h"
#include "scm/scm.h"

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

static inline void free_expired(struct slab *slab, void *object)
{
    struct prudence_cache *cache = slab->cache;
    bool deferred = load_relaxed(&option_scm_deferred);

    if (likely(!deferred) && likely(uses_sequences(cache)) && os_percpu_push(&cache->lines, object))
        return;
    annotate_taken(slab, object);
    object_free_expired(slab, object, deferred);
}

static __attribute__((noinline, cold, noreturn)) void too_few(const struct slab *slab,
                                                              const void *object)
{
    os_report(
        "an expiration date of %p of cache '%s' was not counted: it came as the last one ended",
        object, slab->cache->name);
    os_abort();
}

/*
 * One date less in the word, which is given as it was before. True: it was the last.
 *
 * Who finds that the object has 1 date, its own, which has expired, changes the word without an atomic
 * read-modify-write. For no other thread may give the object a date meanwhile: it would have to have one
 * that has not expired, which counts; or, by global time, to have given it before its own tick, without
 * which this date would not have expired. Acquire and release: what other threads did with the object,
 * before they took theirs, is before what its next owner does.
 */
static inline bool date_is_last(const struct slab *slab, const void *object, uint32_t *term,
                                uint32_t *word)
{
    *word = load_acquire(term);
    if (likely(term_dates(*word) == 1)) {
        store_relaxed(term, *word - 1);
        return true;
    }
    if (unlikely(race_detector_on)) /* to the thread whose date ends last: its annotate_taken */
        annotate_passes(slab, object);
    *word = __atomic_fetch_sub(term, 1, __ATOMIC_ACQ_REL);
    if (unlikely(!term_dates(*word)))
        too_few(slab, object);
    return term_dates(*word) == 1;
}

static inline void date_end(struct scm_thread *self, void *object)
{
    struct slab *slab = slab_known(object);
    uint32_t *term = &slab_terms(slab)[slab_index(slab, object)], word;

    if (!date_is_last(slab, object, term, &word))
        return;
    count_add(&slab->expiring, -1);
    count_add(&self->counts.ended, 1);
    if (unlikely(term_finalizer(word))) {
        if (!finalize(self, term, object))
            return;
        store_relaxed(term, 0u);
    }
    free_expired(slab, object);
}

/* The first page has been taken to its end. Release: who sees that it counts sees `begin` of the next, so
 * what is taken never seems more than it is (add_thread). */
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

/* A finalizer may call anything: the list is in order whenever date_end is called. */
void expired_take(struct scm_thread *self, uint64_t count)
{
    if (unlikely(self->collecting))
        return;
    if (unlikely(self->nothing != NULL))
        real_time_glance(self);
    for (; count && self->expired.last; count--) {
        struct page *page = self->expired.first;
        uint64_t taken = self->begin;
        void *object = page->objects[taken];

        store_relaxed(&self->begin, taken + 1);
        if (taken + 1 == page->count)
            page_end(self);
        date_end(self, object);
    }
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
    uint32_t *terms, *term, word;

    if (number < -1 || number >= TERM_FINALIZERS || (number >= 0 && !finalizer_of(number + 1))) {
        os_report("scm_set_finalizer: there is no finalizer %d (object %p)", number, object);
        return EINVAL;
    }
    terms = slab_terms_make(slab);
    if (!terms)
        return ENOMEM;
    term = &terms[slab_index(slab, object)];
    word = load_relaxed(term);
    if (!term_dates(word))
        slab_check_live(slab, object, slab_index(slab, object), "scm_set_finalizer");
    /* Dates may come and go meanwhile. */
    while (!compare_exchange(term, &word,
                             term_dates(word) | (uint32_t)(number + 1) << TERM_DATES_BITS))
        ;
    return 0;
}
