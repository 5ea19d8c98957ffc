/* SPDX-License-Identifier: MIT */
/*
 * Large blocks: more than 32 KiB, or aligned to more than a page. Each is a slab of one object, so
 * that it is found, checked, deferred and counted as every other object, in one cache that has no
 * per-CPU caches. A freed one goes back to the page source at once.
 */
#include "heap/heap.h"

static struct prudence_cache *large;

static struct prudence_cache *large_cache(void)
{
    static const struct cache_layout layout = {.object_size = OS_PAGE_SIZE, .no_cpu_caches = true};
    struct prudence_cache *cache = load_acquire(&large);

    if (likely(cache != NULL))
        return cache;
    process_start();
    os_lock_take(&heap_lock);
    if (!large)
        store_release(&large, cache_create("large", &layout));
    os_lock_release(&heap_lock);
    return large;
}

/* NULL when memory ran out. *zeroed tells whether the pages are known to be zero. */
void *large_alloc(size_t size, size_t alignment, bool *zeroed)
{
    struct prudence_cache *cache;
    struct slab *slab;

    if (size > PTRDIFF_MAX || alignment > PTRDIFF_MAX - size)
        return NULL;
    cache = large_cache();
    slab = cache ? slab_make_large(cache, round_up(max_size(size, 1), OS_PAGE_SIZE),
                                   max_size(alignment, OS_PAGE_SIZE), zeroed)
                 : NULL;
    if (slab && slab->states)
        object_state_change(slab, slab->base, OBJECT_FREE, OBJECT_LIVE, "allocation");
    return slab ? slab->base : NULL;
}
