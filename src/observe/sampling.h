/* SPDX-License-Identifier: MIT */
/* Chooses the bytes that are sampled, and weighs the samples (see sampling.c). */
#ifndef OBSERVE_SAMPLING_H
#define OBSERVE_SAMPLING_H

#include "heap/counted.h"

#define SAMPLING_RATE_DEFAULT ((uint64_t)512 << 10)
#define SAMPLING_RATE_MOST    ((uint64_t)4 << 30)

/* Seed for tests, from which threads draw in the order in which they come; 0 gives each thread a
 * secret. */
extern uint64_t sampling_seed;

/* Returns whether `size` bytes, allocated now, reach the thread's next sample. */
bool sampling_is_due(size_t size);

/* Returns the number of objects of `size` bytes that a sampled one represents, in units of 1 /
 * SAMPLING_UNIT. The number is 1 / (1 - exp(-size / rate)). */
#define SAMPLING_UNIT_BITS 12
#define SAMPLING_UNIT      (UINT64_C(1) << SAMPLING_UNIT_BITS)
uint64_t sampling_weight(size_t size);

#endif /* OBSERVE_SAMPLING_H */
