/* SPDX-License-Identifier: MIT */
/*
 * Pages of descriptors, from a slab cache of their own: so that empty ones are reused by all threads,
 * through the CPUs' caches, and go back to the system as all else does.
 */
#include "scm/scm.h"

static struct prudence_cache *cache;

/* Under scm_lock. */
bool pages_start(void)
{
    static const struct cache_layout layout = {.object_size = PAGE_BYTES, .alignment = CACHE_LINE};

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

/* A page with room at the end of the list; NULL: there is no memory. */
struct page *page_add(struct scm_thread *thread, struct page_list *list)
{
    struct page *page = object_alloc(cache, PAGE_BYTES, "scm_refresh");

    if (!page)
        return NULL;
    page->next = NULL;
    page->count = 0;
    if (list->last)
        list->last->next = page;
    else
        list->first = page;
    list->last = page;
    list->pages++;
    count_add(&thread->counts.pages, 1);
    return page;
}

/* All pages of `from` behind those of `to`, in constant time. */
void page_lists_join(struct page_list *to, struct page_list *from)
{
    if (!from->first)
        return;
    if (to->last)
        to->last->next = from->first;
    else
        to->first = from->first;
    to->last = from->last;
    to->pages += from->pages;
    *from = (struct page_list){.pages = 0};
}
