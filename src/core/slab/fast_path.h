/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The three fast paths, inlined into each public function. Each is one restartable sequence,
 * without atomic read-modify-write or fence. When they cannot serve (empty, full, owned by another
 * thread, check=1, no rseq), the slow path starts over.
 */
#ifndef SLAB_FAST_PATH_H
#define SLAB_FAST_PATH_H

#include "slab/cache_type.h"

/* Returns NULL if the caller must take the slow path. */
static inline __attribute__((always_inline)) void *cache_alloc_fast(struct prudence_cache *cache)
{
    return os_percpu_pop(&cache->fast_percpu);
}

/* Returns false if the caller must take the slow path. `lines` come from the slab or, which saves
 * waiting for the slab's lookup, from the cache that the caller named. */
static inline __attribute__((always_inline)) bool cache_free_fast(void *const *lines, void *object)
{
    return likely(os_percpu_push(lines, object));
}

static inline __attribute__((always_inline)) bool cache_free_deferred_fast(void *const *lines,
                                                                           void *object)
{
    return likely(os_percpu_append(lines, object));
}

#endif /* SLAB_FAST_PATH_H */
