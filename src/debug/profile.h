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

/* The frame address of the library's function that allocates, so that a trace need not go through all calls below it; NULL: not
 * known. Only while that function runs. */
extern __thread const void *profile_entry;

/* An object of `size` bytes that has only to be counted, if the CPU has one on these lines; else NULL, and nothing is counted. `lines`:
 * those that the cache's slabs have, which are closed where more than counting is to be done for its objects, or it
 * is destroyed. Never where nothing is sampled: the count stays 0 there.
 *
 * Counted first, and taken back if that was wrong, because what is counted is frequent, and then it is one instruction. */
static inline void *profile_alloc_counted(void *const *lines, size_t size)
{
    void *object;

    if (likely(sampling_goes_on(size))) {
        object = os_percpu_pop(lines);
        if (likely(object != NULL))
            return object;
    }
    sampling_takes_back(size);
    return NULL;
}

#endif /* DEBUG_PROFILE_H */
