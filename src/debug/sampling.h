/* SPDX-License-Identifier: MIT */
/* Chooses the bytes that are sampled, and weighs the samples (see sampling.c). */
#ifndef DEBUG_SAMPLING_H
#define DEBUG_SAMPLING_H

#include "base/base.h"

/* Average number of bytes between samples; 0 if nothing is sampled. Set once, at the start or
 * later; atomic. */
extern uint64_t sampling_rate;
#define SAMPLING_RATE_DEFAULT ((uint64_t)512 << 10)
#define SAMPLING_RATE_MOST    ((uint64_t)4 << 30)

/* Seed for tests, from which threads draw in the order in which they come; 0 gives each thread a
 * secret. */
extern uint64_t sampling_seed;

/* Bytes until this thread's next sample; 0 before the first draw. */
extern __thread int64_t sampling_left;

/* Counts `size` bytes. Returns false if they reach the next sample, or if there is none; the caller
 * then takes them back. */
static inline bool sampling_goes_on(size_t size)
{
#if defined(__x86_64__) && defined(__LP64__)
    bool goes_on; /* set by the instruction that counts */

    __asm__("subq %[size], %[left]"
            : [left] "+m"(sampling_left), "=@ccg"(goes_on)
            : [size] "r"(size));
    return goes_on;
#else
    sampling_left = (int64_t)((uint64_t)sampling_left - size);
    return sampling_left > 0;
#endif
}

static inline void sampling_takes_back(size_t size)
{
    sampling_left = (int64_t)((uint64_t)sampling_left + size);
}

/* Returns whether `size` bytes, allocated now, reach the thread's next sample. */
bool sampling_is_due(size_t size);

/* Returns the number of objects of `size` bytes that a sampled one represents, in units of 1 /
 * SAMPLING_UNIT. The number is 1 / (1 - exp(-size / rate)). */
#define SAMPLING_UNIT_BITS 12
#define SAMPLING_UNIT      (UINT64_C(1) << SAMPLING_UNIT_BITS)
uint64_t sampling_weight(size_t size);

#endif /* DEBUG_SAMPLING_H */
