/* SPDX-License-Identifier: MIT */
/*
 * Processes expired descriptors in the order in which they were made.
 *   - If the object has a later date in its stamp, the descriptor is queued again (stamps.h).
 *   - Otherwise the object's count is lowered by one, and an object with none is freed,
 *     unless a finalizer keeps it.
 *   - If an object with none remaining is the first page of a region, the region ends
 * (region_end.c),
 *     and the pages are freed after the expired descriptors.
 *
 * The thread that takes the count to 0 is the only one that has the object then. No other thread
 * has a date for it. A thread that gave it one now would break the rule that an object may not have
 * expired when it is refreshed.
 */
#include "race_detector.h"
#include "shortterm/free_expired.h"
#include "shortterm/regions.h"

static __attribute__((noinline, cold, noreturn)) void too_few(const struct slab *slab,
                                                              const void *object)
{
    os_report_misuse(
        "an expiration date of %p of cache '%s' was not counted: a thread refreshed the object "
        "while its last date ended; refresh it only while it has a date that cannot end",
        object, slab->cache->name);
    os_abort();
}

/*
 * Removes one date from the word, and the stamp if the descriptor has BEHIND_STAMP. Passes back the
 * former word. Returns true for the last date.
 *
 * If the object has one date, which is this thread's and has expired, the thread changes the word
 * without an atomic read-modify-write, because no other thread may add a date at the same time.
 * Such a thread would need an unexpired date, which counts; or, by global time, it added the date
 * before its own tick, without which this date would not have expired. Acquire and release order
 * the accesses of other threads, made before they removed their dates, before the accesses of the
 * next owner.
 */
static inline bool date_is_last(const struct slab *slab, union expiry_count *expiry,
                                uint64_t descriptor, uint32_t *word)
{
    const void *object = object_of(descriptor);

    *word = load_acquire(&expiry->word);
    if (likely(expiry_count_dates(*word) == 1)) {
        store_relaxed(&expiry->both, (uint64_t)*word - 1);
        return true;
    }
    if (descriptor & BEHIND_STAMP)
        store_relaxed(&expiry->stamp, 0u);
    if (unlikely(race_detector_on)) /* passed to the thread whose date ends last (annotate_taken) */
        annotate_passes(slab, object);
    *word = __atomic_fetch_sub(&expiry->word, 1, __ATOMIC_ACQ_REL);
    if (unlikely(!expiry_count_dates(*word)))
        too_few(slab, object);
    return expiry_count_dates(*word) == 1;
}

static inline void date_end(struct scm_thread *self, struct slab *slab, union expiry_count *expiry,
                            uint64_t descriptor)
{
    void *object = object_of(descriptor);
    uint32_t word;

    if (!date_is_last(slab, expiry, descriptor, &word))
        return;
    count_add(&slab->may_leave, -1);
    count_add(&self->counts.ended, 1);
    if (unlikely(expiry_count_finalizer(word))) {
        if (expiry_count_finalizer(word) == EXPIRY_COUNT_REGION) {
            region_end_expired(self, slab, object);
            return;
        }
        if (!finalizer_run(self, &expiry->word, object))
            return;
        store_relaxed(&expiry->word, 0u);
    }
    free_expired(slab, object);
}

/* Removes the first page, all of which has been taken. Release order makes `begin` of the next page
 * visible to a thread that sees the new count, so the count of taken descriptors is never read too
 * high (add_thread). */
static void page_end(struct scm_thread *self)
{
    struct page *page = self->expired.first;

    self->expired.first = page->next;
    store_relaxed(&self->begin, (uint64_t)0);
    store_release(&self->counts.taken, self->counts.taken + page->count);
    os_probe3(collect, self, pages_cache()->name, page->count);
    page_free(self, page);
    if (self->expired.first)
        return;
    self->expired.first = self->nothing;
    self->expired.last = NULL;
    ended_feed(self);
}

/* Records that the descriptors before `taken` have been processed. */
static inline void take_to(struct scm_thread *self, const struct page *page, uint64_t taken)
{
    store_relaxed(&self->begin, taken);
    if (taken == page->count)
        page_end(self);
}

/* Takes up to `most` descriptors and returns their number. Returns 0 if there is no memory to queue
 * one again, which then stays the first. A finalizer may call any function, so the list is
 * consistent whenever date_end is called. */
static inline uint64_t expire_take(struct scm_thread *self, uint64_t most)
{
    struct page *page = self->expired.first;
    uint64_t taken = self->begin, descriptor = page->descriptors[taken], followed;
    void *object = object_of(descriptor);
    struct slab *slab = slab_known(object);
    union expiry_count *expiry = &expiry_counts_in(slab)[slab_index(slab, object)];
    enum following following = IS_OVER;

    if (lasts_longer(descriptor, load_relaxed(&expiry->stamp), page)) {
        followed = stamps_follow(self, page, taken, most);
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
        date_end(self, slab, expiry, descriptor);
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
        taken = expire_take(self, left);
    if (unlikely(self->nothing != NULL))
        region_end_free_pages(self, count);
}
