/* SPDX-License-Identifier: MIT */
/* The sampling heap profiler (see profile.c). */
#ifndef DEBUG_PROFILE_H
#define DEBUG_PROFILE_H

#include "debug/sampling.h"
#include "slab/extension.h"
#include "slab/slab.h"

enum { PROFILE_EXTENSION = 1 }; /* its number; its side data: samples */
extern const struct slab_extension profile_extension;

/* Makes the tables, if the option asks for a profile. */
void profile_start(void);

/* Samples that there was no memory for. */
uint64_t profile_dropped(void);

/* An object of a cache whose fast path of allocations is closed, while its slabs' are open, because bytes are counted; if
 * these are not sampled, and the CPU's object cache has one. NULL: all else. `size`: 0: a whole object. `cache` may be NULL or
 * destroyed: all lines of such a cache are closed. */
static inline void *profile_alloc_unsampled(struct prudence_cache *cache, size_t size)
{
    void *object;

    if (!cache || load_relaxed(&cache->fast_percpu) == cache->slab_percpu)
        return NULL;
    size = size ? size : cache->object_size;
    if (sampling_left <= (int64_t)size)
        return NULL;
    object = os_percpu_pop(&cache->slab_percpu);
    if (likely(object != NULL))
        sampling_left -= (int64_t)size;
    return object;
}

#endif /* DEBUG_PROFILE_H */
