/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What KASAN is told of objects: accessible from allocation until they are free; a deferred object until
 * its grace period is over. Only whole steps of KASAN's eight bytes. Objects that readers may look at
 * while they are free (type-safe ones) and those that a constructor made stay accessible for good.
 *
 * No module may use KASAN's own functions for slabs; those that compilers call for the stack are open to
 * all, so its reports name such an access "use-after-scope".
 */
#ifndef PRUDENCE_ANNOTATE_H
#define PRUDENCE_ANNOTATE_H

#include "slab/cache.h"

static inline bool is_annotated(const struct prudence_cache *cache)
{
    return !cache->constructor && !(cache->flags & CACHE_TYPESAFE);
}

#ifdef CONFIG_KASAN_GENERIC
#include <linux/kasan.h>

void __asan_set_shadow_00(const void *shadow, size_t size);
void __asan_set_shadow_f8(const void *shadow, size_t size);

static inline void annotate_live(const struct prudence_cache *cache, void *object, size_t bytes)
{
    if (is_annotated(cache))
        __asan_set_shadow_00(kasan_mem_to_shadow(object), bytes >> KASAN_SHADOW_SCALE_SHIFT);
}

static inline void annotate_free(const struct prudence_cache *cache, void *object, size_t bytes)
{
    if (is_annotated(cache))
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
