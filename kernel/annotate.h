/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Informs KASAN that live objects may be accessed, and deferred ones until their grace period is
 * over. Marks only whole granules of 8 bytes. Objects of type-safe caches, which readers may access
 * while free, and constructed objects always stay accessible.
 *
 * Modules may not use KASAN's slab functions. The functions that compilers call for stack variables
 * are exported, so KASAN reports such an access as "use-after-scope".
 */
#ifndef PRUDENCE_ANNOTATE_H
#define PRUDENCE_ANNOTATE_H

#include "slab/cache_type.h"

/* Returns whether objects keep their contents while they are free: neither init_on_alloc nor
 * init_on_free zeroes them. */
static inline bool contents_stay(const struct prudence_cache *cache)
{
    return cache->flags & (CACHE_TYPESAFE | CACHE_CONSTRUCTED);
}

/* Returns whether to zero objects as they become free, for init_on_free. Blocks are never reused;
 * the page allocator zeroes their pages. */
static inline bool zeroed_when_free(const struct prudence_cache *cache)
{
    return unlikely(want_init_on_free()) && cache->percpu && !contents_stay(cache);
}

#ifdef CONFIG_KASAN_GENERIC
#include <linux/kasan.h>

void __asan_set_shadow_00(const void *shadow, size_t size);
void __asan_set_shadow_f8(const void *shadow, size_t size);

static inline void annotate_live(const struct prudence_cache *cache, void *object, size_t bytes)
{
    if (!contents_stay(cache))
        __asan_set_shadow_00(kasan_mem_to_shadow(object), bytes >> KASAN_SHADOW_SCALE_SHIFT);
}

static inline void annotate_free(const struct prudence_cache *cache, void *object, size_t bytes)
{
    if (!contents_stay(cache))
        __asan_set_shadow_f8(kasan_mem_to_shadow(object), bytes >> KASAN_SHADOW_SCALE_SHIFT);
}
#else
static inline void annotate_live(const struct prudence_cache *cache, void *object, size_t bytes)
{
}

static inline void annotate_free(const struct prudence_cache *cache, void *object, size_t bytes)
{
}
#endif

#endif /* PRUDENCE_ANNOTATE_H */
