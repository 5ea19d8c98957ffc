/* SPDX-License-Identifier: MIT */
/* The sampling heap profiler (see profile.c). */
#ifndef OBSERVE_PROFILE_H
#define OBSERVE_PROFILE_H

#include "observe/sampling.h"
#include "slab/extension.h"
#include "slab/slab.h"

enum { PROFILE_EXTENSION = 1 }; /* number of the extension; side data: samples */
extern const struct slab_extension profile_extension;

/* Makes the tables, if the option asks for a profile. */
void profile_start(void);

/* Makes traces possible, if a profile is wanted. Not called from inside an allocation, because it
 * may allocate. */
void profile_prime(void);

/* Begins a profile although there are caches; the rate is set. Returns false without memory. The
 * caller keeps other threads from making caches. */
bool profile_begin(void);

/* Returns whether samples were taken at another rate than this before. They would count wrongly. */
bool profile_keeps_from(uint64_t rate);

/* Returns the number of samples dropped for lack of memory. */
uint64_t profile_dropped(void);
extern uint64_t profile_samples_dropped; /* the same; watchers read it */

#endif /* OBSERVE_PROFILE_H */
