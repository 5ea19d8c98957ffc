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

/* Whether an allocation of `size` bytes has only to be counted. Never where nothing is sampled, where the count stays 0. */
static inline bool profile_only_counts(size_t size)
{
    return sampling_left > (int64_t)size;
}

/* Such an object, if the CPU's object cache has one; else NULL. Where more than counting is to be done for the objects of a
 * cache, or it is destroyed, the lines that its slabs have are closed. */
static inline void *profile_alloc_counted(struct prudence_cache *cache, size_t size)
{
    void *object = os_percpu_pop(&cache->slab_percpu);

    if (likely(object != NULL))
        sampling_left -= (int64_t)size;
    return object;
}

#endif /* DEBUG_PROFILE_H */
