/* SPDX-License-Identifier: MIT */
/*
 * The library's side of <prudence/inline.h>: the functions that inlined fast paths call when they
 * cannot go on. Their names contain the number of the layout that the inlined code knows. A library
 * with another layout has other names, so the loader refuses a program that was compiled with this
 * layout (docs/adr/0040). This file also checks that the layout matches this library's structures.
 */
#include <prudence/prudence.h>
#include <prudence/sequences.h>

#include "heap/object.h"

#ifdef PRUDENCE_HAS_SEQUENCES

#define SAME_PLACE(ours, member, theirs, its)                                                      \
    _Static_assert(offsetof(ours, member) == offsetof(theirs, its), "known to inlined fast paths")

SAME_PLACE(struct prudence_cache, fast_percpu, struct prudence_inline_cache, lines);
SAME_PLACE(struct prudence_cache, page_map, struct prudence_inline_cache, leaves);
SAME_PLACE(struct prudence_cache, window_words.base, struct prudence_inline_cache, window);
SAME_PLACE(struct prudence_cache, window_words.extent, struct prudence_inline_cache, extent);
SAME_PLACE(struct prudence_cache, window_mask, struct prudence_inline_cache, mask);
SAME_PLACE(struct prudence_cache, window_grid.reciprocal, struct prudence_inline_cache, reciprocal);
SAME_PLACE(struct prudence_cache, window_grid.end, struct prudence_inline_cache, end);
SAME_PLACE(struct prudence_cache, cpus, struct prudence_inline_cache, cpus);
SAME_PLACE(struct slab, cache, struct prudence_inline_slab, cache);
SAME_PLACE(struct slab, base, struct prudence_inline_slab, base);
SAME_PLACE(struct slab, grid.reciprocal, struct prudence_inline_slab, reciprocal);
SAME_PLACE(struct slab, grid.end, struct prudence_inline_slab, end);
_Static_assert(PAGE_MAP_LEAVES == PRUDENCE_INLINE_LEAVES, "known to inlined fast paths");
_Static_assert(PAGE_MAP_LEAF_SHIFT == PRUDENCE_INLINE_LEAF_SHIFT, "known to inlined fast paths");
_Static_assert(PAGE_MAP_PAGE_SHIFT == PRUDENCE_INLINE_PAGE_SHIFT, "known to inlined fast paths");

#endif

#define PASTE_(layout, name) prudence_inline##layout##_##name
#define PASTE(layout, name)  PASTE_(layout, name)
#define NAME(name)           PASTE(PRUDENCE_INLINE_LAYOUT, name)

PRUDENCE_API void *NAME(cache_alloc)(struct prudence_cache *cache);
PRUDENCE_API void NAME(cache_free)(struct prudence_cache *cache, void *object);
PRUDENCE_API void NAME(cache_free_deferred)(struct prudence_cache *cache, void *object);
PRUDENCE_API void *NAME(cache_replace)(struct prudence_cache *cache, void *old);
PRUDENCE_API void NAME(stay_loaded)(const void *address);

void *NAME(cache_alloc)(struct prudence_cache *cache)
{
    if (cache)
        cache_want_window(cache);
    return object_alloc_aside(cache, 0, "prudence_cache_alloc");
}

void NAME(cache_free)(struct prudence_cache *cache, void *object)
{
    object_free_aside(cache, object, slab_of_cache(cache, object), "prudence_cache_free");
}

void NAME(cache_free_deferred)(struct prudence_cache *cache, void *object)
{
    object_free_deferred_aside(cache, object, slab_of_cache(cache, object),
                               "prudence_cache_free_deferred");
}

void *NAME(cache_replace)(struct prudence_cache *cache, void *old)
{
    return object_replace_aside(cache, old, slab_of_cache(cache, old), "prudence_cache_replace");
}

/* Called by a constructor of the module that contains `address`. */
void NAME(stay_loaded)(const void *address)
{
    os_stay_loaded(address);
}
