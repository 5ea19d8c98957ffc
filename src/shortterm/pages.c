/* SPDX-License-Identifier: MIT */
/*
 * Pages of descriptors, from a separate slab cache. So all threads reuse empty pages through the
 * CPUs' caches, and pages go back to the system like other memory. A thread keeps one page that
 * became empty for the next list, because most ticks empty a page and most phases begin one.
 */
#include "shortterm/scm.h"

#include "slab/cache.h"

static struct prudence_cache *cache;

/* Creates the cache. Called under scm_lock. */
bool pages_start(void)
{
    static const struct cache_layout layout = {.object_size = PAGE_BYTES,
                                               .alignment = PAGE_BYTES < CACHE_LINE ? PAGE_BYTES
                                                                                    : CACHE_LINE,
                                               .flags = CACHE_OWN};

    if (cache)
        return true;
    process_start();
    os_lock_take(&heap_lock);
    store_release(&cache, cache_create("scm-descriptors", &layout));
    os_lock_release(&heap_lock);
    return cache != NULL;
}

struct prudence_cache *pages_cache(void)
{
    return load_acquire(&cache);
}

static struct page *page_new(struct scm_thread *self)
{
    struct page *page = self->spare;

    self->spare = NULL;
    if (page)
        return page;
    page = object_alloc(cache, PAGE_BYTES, "scm_refresh");
    if (page)
        page->stamp = NO_OWNER;
    return page;
}

/* Adds an empty page at the end of a date's list. Returns NULL if there is no memory. Allocating
 * may run destructors of other caches' objects, which may refresh, so the list is looked up
 * afterwards. */
struct page *page_add(struct scm_thread *self, struct scm_clock *clock, uint64_t date)
{
    struct page *page = page_new(self);
    struct page_list *list;
    uint64_t place;

    if (!page)
        return NULL;
    if (unlikely(clock->owner == NO_OWNER))
        owner_attach_clock(clock);
    owner_stamp_page(page, stamp_of(clock->owner, date));
    page->next = NULL;
    page->count = 0;
    page->date = date;
    place = date & clock->mask;
    list = &clock->ring[place];
    if (list->last) {
        list->before += list->last->count;
        list->last->next = page;
    } else {
        list->first = page;
        marks_set(clock->marks, clock->mask + 1, place);
    }
    list->last = page;
    count_add(&self->counts.pages, 1);
    tell_overhead(self, "descriptors", (int64_t)PAGE_BYTES);
    return page;
}

static void page_give_back(struct page *page)
{
    owner_stamp_page(page, NO_OWNER);
    prudence_cache_free(cache, page);
}

void page_free(struct scm_thread *self, struct page *page)
{
    count_add(&self->counts.pages, -1);
    tell_overhead(self, "descriptors", -(int64_t)PAGE_BYTES);
    if (self->spare)
        page_give_back(page);
    else
        self->spare = page;
}

/* Frees the spare page of a thread that has ended. */
void page_spare_free(struct scm_thread *thread)
{
    if (thread->spare)
        page_give_back(thread->spare);
    thread->spare = NULL;
}
