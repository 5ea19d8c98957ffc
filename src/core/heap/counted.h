/* SPDX-License-Identifier: MIT */
/*
 * Allocations that are only counted. Where bytes are sampled, each thread counts down to its next
 * sample. The allocation that reaches it takes the slow path, where an extension of the slab layer
 * serves it.
 */
#ifndef HEAP_COUNTED_H
#define HEAP_COUNTED_H

#include "os/os.h"

/* Average number of bytes between samples; 0 if nothing is sampled. Set once, at the start or
 * later; atomic. */
extern uint64_t sampling_rate;

/* Bytes until this thread's next sample; 0 before the first draw. */
extern __thread int64_t sampling_left;

/* Counts `size` bytes. Returns false if they reach the next sample, or if there is none; the caller
 * then takes them back. */
static inline bool counted_goes_on(size_t size)
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

static inline void counted_take_back(size_t size)
{
    sampling_left = (int64_t)((uint64_t)sampling_left + size);
}

/* Pops an object that only has to be counted from the CPU's `lines` and counts `size` bytes, or
 * returns NULL and counts nothing. `lines` belong to the cache's slabs, and are closed if objects
 * need more than counting or the cache is destroyed. Returns NULL if nothing is sampled, because
 * the count is 0 then.
 *
 * The bytes are counted first and taken back if that was wrong, because counting is the frequent
 * case and then takes one instruction. */
static inline void *counted_pop(void *const *lines, size_t size)
{
    void *object;

    if (likely(counted_goes_on(size))) {
        object = os_percpu_pop(lines);
        if (likely(object != NULL))
            return object;
    }
    counted_take_back(size);
    return NULL;
}

#endif /* HEAP_COUNTED_H */
