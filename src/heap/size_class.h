/* SPDX-License-Identifier: MIT */
/* Size classes: from a size to its slab cache (see size_class.c). */
#ifndef HEAP_SIZE_CLASS_H
#define HEAP_SIZE_CLASS_H

#include "heap/heap.h"

#define LINEAR_STEP          16
#define LINEAR_MAX           128
#define LINEAR_CLASSES       (LINEAR_MAX / LINEAR_STEP)
#define CLASSES_PER_DOUBLING 8
#define DOUBLINGS            8 /* 128 to 32768 */
#define CLASSES              (LINEAR_CLASSES + DOUBLINGS * CLASSES_PER_DOUBLING)

extern HIDDEN struct prudence_cache *size_classes[CLASSES];

/*
 * A size's place in the tables below: the smallest sizes in steps, then the others in the steps of the smallest of them, then one
 * for all sizes that have no class, where nothing ever is. It is found without size_class_of(), because that takes `bsr`, which waits
 * for the register that it writes: each call would wait for the call before it (ADR 128).
 */
#define SMALL_MAX    1024
#define SMALL_STEPS  (SMALL_MAX / LINEAR_STEP + 1)
#define MEDIUM_STEP  (SMALL_MAX / CLASSES_PER_DOUBLING)
#define MEDIUM_STEPS ((OBJECT_SIZE_MAX - SMALL_MAX) / MEDIUM_STEP)
#define SIZE_PLACES  (SMALL_STEPS + MEDIUM_STEPS + 1)

/* The classes that are in use. */
extern HIDDEN struct prudence_cache *ready_classes[SIZE_PLACES];

/* Where allocations look. */
struct size_tables {
    /* The classes whose fast path of allocations was open when they were made: so where all bytes are counted, it is not tried in vain. */
    struct prudence_cache *open[SIZE_PLACES];
    /* With a profile: the lines of classes whose objects are only to be counted. All others: lines that are closed for good, so that
     * allocations need not ask. */
    void *counted[SIZE_PLACES];
};
extern HIDDEN struct size_tables size_tables;

/* Before the first class is made. */
void size_classes_start(void);

/* `size` is 1 to OBJECT_SIZE_MAX. */
static inline unsigned size_class_of(size_t size)
{
    unsigned doubling, step_shift;

    if (size <= LINEAR_MAX)
        return (unsigned)((size - 1) / LINEAR_STEP);
    doubling = 63 - (unsigned)__builtin_clzll(size - 1) - 7; /* 0 for 129 to 256 */
    step_shift = doubling + 4;                               /* an eighth of 128 << doubling */
    return LINEAR_CLASSES + doubling * CLASSES_PER_DOUBLING +
           (unsigned)((size - 1 - ((size_t)LINEAR_MAX << doubling)) >> step_shift);
}

/* Of any size. */
static inline __attribute__((always_inline)) size_t size_place(size_t size)
{
    size_t place = SIZE_PLACES - 1;

    if (likely(size <= SMALL_MAX))
        place = (size + LINEAR_STEP - 1) / LINEAR_STEP;
    else if (likely(size <= OBJECT_SIZE_MAX))
        place = SMALL_STEPS + (size - SMALL_MAX - 1) / MEDIUM_STEP;
    __asm__("" : "+r"(place)); /* gcc would multiply it here, with an instruction of its own */
    return place;
}

/* The cache of an ordinary size whose class is in use already; NULL for anything else. */
static inline __attribute__((always_inline)) struct prudence_cache *size_class_ready(size_t size)
{
    return load_acquire(&ready_classes[size_place(size)]);
}

/* The cache of sizes with that place, for an allocation's fast path; NULL also if that would fail anyway. */
static inline __attribute__((always_inline)) struct prudence_cache *size_class_open(size_t place)
{
    return load_acquire(&size_tables.open[place]);
}

/* The cache for `size` bytes at `alignment`, made if need be; NULL when it must be a large block,
 * or (with *failed set) when memory for the cache itself ran out. */
struct prudence_cache *size_class_cache(size_t size, size_t alignment, bool *failed);

#endif /* HEAP_SIZE_CLASS_H */
