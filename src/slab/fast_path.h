/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The three fast paths, inlined into each public function: one restartable sequence each, no
 * atomic read-modify-write, no fence. Whatever they cannot do (empty, full, owned by another,
 * check=1, no rseq) the slow path does from the start.
 */
#ifndef SLAB_FAST_PATH_H
#define SLAB_FAST_PATH_H

#include "slab/cache.h"

/* NULL: take the slow path. */
static inline __attribute__((always_inline)) void *cache_alloc_fast(struct prudence_cache *cache)
{
    return os_percpu_pop(&cache->fast_percpu);
}

/* `lines`: of the slab, or the same from a cache that the caller named: then what follows does not
 * wait for the slab to be found. False: take the slow path. */
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
