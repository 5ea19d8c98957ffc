/* SPDX-License-Identifier: MIT */
/* The sampling heap profiler (see profile.c). */
#ifndef DEBUG_PROFILE_H
#define DEBUG_PROFILE_H

#include "debug/sampling.h"
#include "slab/extension.h"
#include "slab/slab.h"

enum { PROFILE_EXTENSION = 1 }; /* number of the extension; side data: samples */
extern const struct slab_extension profile_extension;

/* Makes the tables, if the option asks for a profile. */
void profile_start(void);

/* Begins a profile although there are caches; the rate is set. Returns false without memory. The
 * caller keeps other threads from making caches. */
bool profile_begin(void);

/* Returns whether samples were taken at another rate than this before. They would count wrongly. */
bool profile_keeps_from(uint64_t rate);

/* Returns the number of samples dropped for lack of memory. */
uint64_t profile_dropped(void);
extern uint64_t profile_samples_dropped; /* the same; watchers read it */

/* Frame address of the library's function that allocates, so that a trace can skip the calls below;
 * NULL if unknown. Valid only while that function runs. */
extern __thread const void *profile_entry;

/* Pops an object that only has to be counted from the CPU's `lines` and counts `size` bytes, or
 * returns NULL and counts nothing. `lines` belong to the cache's slabs, and are closed if objects
 * need more than counting or the cache is destroyed. Returns NULL if nothing is sampled, because
 * the count is 0 then.
 *
 * The bytes are counted first and taken back if that was wrong, because counting is the frequent
 * case and then takes one instruction. */
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
