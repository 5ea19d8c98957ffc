/* SPDX-License-Identifier: MIT */
/* Which bytes are sampled, and what a sample stands for (see sampling.c). */
#ifndef DEBUG_SAMPLING_H
#define DEBUG_SAMPLING_H

#include "base/base.h"

/* Bytes from one sample to the next, on average; 0: nothing is sampled. Constant after start. */
extern uint64_t sampling_rate;
#define SAMPLING_RATE_DEFAULT ((uint64_t)512 << 10)
#define SAMPLING_RATE_MOST    ((uint64_t)4 << 30)

/* For tests: threads draw from it, in the order in which they come; 0: each has its own secret. */
extern uint64_t sampling_seed;

/* Bytes that this thread may still allocate before it comes to the next sample; 0 or less: not drawn yet. */
extern __thread int64_t sampling_left;

/* Counts `size` bytes. False: they reach the next sample, or there is none; then they are to be taken back. */
static inline bool sampling_goes_on(size_t size)
{
#if defined(__x86_64__) && defined(__LP64__)
    bool goes_on; /* one instruction, and no other to test what it left */

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

/* Whether `size` bytes, which are allocated now, reach the thread's next sample. */
bool sampling_is_due(size_t size);

/* How many objects of `size` bytes a sampled one stands for, in units of 1 / SAMPLING_UNIT: 1 / (1 - exp(-size / rate)). */
#define SAMPLING_UNIT_BITS 12
#define SAMPLING_UNIT      (UINT64_C(1) << SAMPLING_UNIT_BITS)
uint64_t sampling_weight(size_t size);

#endif /* DEBUG_SAMPLING_H */
