/* SPDX-License-Identifier: MIT */
/*
 * Objects of no bytes. The pages of a cache with CACHE_CLOSED may not be touched, so malloc(0)
 * returns a unique address that faults. The slab layer never reads an object's memory, so
 * nothing else changes. If the system refuses to close pages they stay accessible, and accesses go
 * unnoticed.
 */
#include "guard/closed.h"

#include "guard/page_jobs.h"
#include "slab/slab.h"

COLD static enum extension_wish closed_wants(const struct cache_layout *layout)
{
    return extension_wanted_if(layout->flags & CACHE_CLOSED);
}

static bool closed_made(struct slab *slab)
{
    if (!slab->alone)
        os_pages_guard(slab->pages, slab->bytes);
    return true;
}

/* Pages to open, described in the memory that was their slab's. */
struct opening {
    struct page_job job;
    void *pages;
    size_t bytes, memory;
};
_Static_assert(sizeof(struct opening) <= sizeof(struct slab), "there is room for it");

static bool open_pages(struct page_job *job)
{
    struct opening *opening = (struct opening *)job;

    return os_pages_unguard(opening->pages, opening->bytes);
}

/* Frees the pages. Pages that the system refuses to open are lost to the page source. */
static void closed_opened(struct page_job *job, bool done)
{
    struct opening *opening = (struct opening *)job;

    if (done)
        os_pages_free(opening->pages, opening->bytes);
    os_meta_free(opening, opening->memory);
}

static bool closed_keep_pages(struct slab *slab)
{
    const struct opening of_slab = {
        .pages = slab->pages, .bytes = slab->bytes, .memory = slab_memory(slab)};
    struct opening *opening = (struct opening *)slab;

    *opening = of_slab;
    page_job_queue(&opening->job, open_pages, closed_opened);
    return true;
}

const struct slab_extension closed_extension = {
    .wants = closed_wants, .made = closed_made, .keep_pages = closed_keep_pages};
