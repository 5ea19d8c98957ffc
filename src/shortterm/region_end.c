/* SPDX-License-Identifier: MIT */
/* Ends regions (regions.h). Handles are refused from then on, and pages freed bit by bit. */
#include "shortterm/free_expired.h"
#include "shortterm/regions.h"

static void region_page_free(struct scm_thread *self, struct region_page *page)
{
    struct slab *slab = slab_known(page);

    count_add(&self->counts.region_bytes, -(int64_t)slab_object_bytes(slab));
    if (expiry_counts_in(slab))
        store_relaxed(&expiry_count_of(page)->both, (uint64_t)0);
    free_expired(slab, page);
}

/* Ends a region, so that the handle is refused. Later calls of this thread free the pages. */
void region_end(struct scm_thread *self, struct region *region)
{
    store_relaxed(&region->owner, (uint64_t)0);
    count_add(&self->counts.regions, -1);
    list_append(&self->ended_regions, &region->link);
    thread_state_watch(self);
}

static __attribute__((noinline, cold, noreturn)) void head_is_damaged(const void *page)
{
    os_report_misuse(
        "the head of page %p of a region is overwritten: the program wrote beyond the end of an "
        "object at a lower address",
        page);
    os_abort();
}

/* Ends the region whose last date is over. */
void region_end_expired(struct scm_thread *self, struct slab *slab, void *page)
{
    const struct scm_region *handle = (void *)(uintptr_t)((struct region_page *)page)->handle;
    struct region *region = region_at(handle);

    if (unlikely(!region) || unlikely(!handle_is(region, handle)) ||
        unlikely(region->first != page))
        head_is_damaged(page);
    if (unlikely(region_is_abandoned(self, load_relaxed(&region->owner)))) {
        count_add(&self->counts.kept, 1);
        return;
    }
    annotate_taken(slab, page);
    region_end(self, region);
}

/* Frees up to `count` pages of the thread's ended regions. */
void region_end_free_pages(struct scm_thread *self, uint64_t count)
{
    while (count && !list_is_empty(&self->ended_regions)) {
        struct region *region = list_first(&self->ended_regions, struct region, link);
        struct region_page *page = region->first;

        store_relaxed(&region->first, page->next);
        region_page_free(self, page);
        count_add(&self->counts.steps, 1);
        count--;
        if (region->first)
            continue;
        list_remove(&region->link);
        region_place_give_back(self, region);
    }
    thread_state_watch(self);
}
