/* SPDX-License-Identifier: MIT */
/*
 * Objects of no bytes. Slabs of a cache with CACHE_CLOSED have pages that may not be touched, so malloc(0) returns an
 * address of its own that faults. The slab layer never looks at an object's memory, so nothing else changes. When the
 * system refuses to close pages, they stay as they are: an access is not seen then.
 */
#include "debug/closed.h"

#include "slab/slab.h"

static bool wants(const struct cache_layout *layout)
{
    return layout->flags & CACHE_CLOSED;
}

static bool made(struct slab *slab)
{
    if (!slab->alone)
        os_pages_guard(slab->pages, slab->bytes);
    return true;
}

/* Pages that the system does not open again are lost to the page source. */
static bool keeps_pages(struct slab *slab)
{
    return !os_pages_unguard(slab->pages, slab->bytes);
}

const struct slab_extension closed_extension = {
    .wants = wants, .made = made, .keeps_pages = keeps_pages};
