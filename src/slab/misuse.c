/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Misuse: one clear message with pointer, cache and what happened, then abort. Nothing here trusts
 * the pointer or the memory around it.
 */
#include "slab/cache.h"

static void report_place(const struct slab *slab, const void *object, const char *what)
    __attribute__((noreturn));

static void report_place(const struct slab *slab, const void *object, const char *what)
{
    uint64_t offset = (uint64_t)((const char *)object - slab->base);
    size_t stride = slab->capacity == 1 ? slab->bytes : slab->cache->stride;

    if ((const char *)object < slab->base || offset >= slab->capacity * stride)
        os_panic("%s: %p lies in a slab of cache '%s' but in none of its objects", what, object,
                 slab->cache->name);
    os_panic("%s: %p points into an object of cache '%s', %zu bytes behind its start %p", what,
             object, slab->cache->name, (size_t)(offset % stride),
             (const void *)((const char *)object - offset % stride));
}

struct slab *slab_of_checked(const struct prudence_cache *cache, const void *object,
                             const char *what)
{
    struct slab *slab = cache ? slab_of_cache(cache, object) : slab_of(object);

    if (likely(slab != NULL))
        return slab;
    slab = os_page_owner(object);
    if (!slab)
        os_panic("%s: foreign pointer %p is not memory of this allocator (cache '%s')", what,
                 object, cache ? cache->name : "any");
    if (cache && slab->cache != cache)
        os_panic("%s: %p belongs to cache '%s', not to '%s'", what, object, slab->cache->name,
                 cache->name);
    report_place(slab, object, what);
}

void report_double(const struct slab *slab, const void *object, bool latent, const char *what)
{
    os_panic("%s: double free: %p of cache '%s' is already %s", what, object, slab->cache->name,
             latent ? "deferred and not yet safe" : "free");
}

/* check=1: every object's state changes by compare-and-swap, so of two frees one is caught. */
void object_state_change(struct slab *slab, const void *object, enum object_state from,
                         enum object_state to, const char *what)
{
    static const char *const names[] = {"free", "live", "deferred and not yet safe"};
    uint8_t expected = (uint8_t)from;

    if (compare_exchange(&slab->states[slab_index(slab, object)], &expected, (uint8_t)to))
        return;
    os_panic("%s: %p of cache '%s' is already %s", what, object, slab->cache->name,
             names[expected]);
}
