/* SPDX-License-Identifier: MIT */
/* Maps sizes to slab caches (see size_class.c). */
#ifndef HEAP_SIZE_CLASS_H
#define HEAP_SIZE_CLASS_H

#include "heap/heap.h"
#include "slab/cache.h"

#define LINEAR_STEP          16
#define LINEAR_MAX           128
#define LINEAR_CLASSES       (LINEAR_MAX / LINEAR_STEP)
#define CLASSES_PER_DOUBLING 8
#define DOUBLINGS            10 /* 128 to 131072 */
#define CLASSES              (LINEAR_CLASSES + DOUBLINGS * CLASSES_PER_DOUBLING)

extern HIDDEN struct prudence_cache *size_classes[CLASSES];

/*
 * A size's place in the tables below. The smallest sizes come in steps of LINEAR_STEP, the others
 * in steps of MEDIUM_STEP, and from MEDIUM_MAX on of LARGE_STEP; the last place is for all sizes
 * without a class and stays empty. The place is computed without size_class_of(), because that uses
 * `bsr`, which waits for the register that it writes, so each call would wait for the call before
 * it (ADR 40).
 */
#define SMALL_MAX    1024
#define SMALL_STEPS  (SMALL_MAX / LINEAR_STEP + 1)
#define MEDIUM_STEP  (SMALL_MAX / CLASSES_PER_DOUBLING)
#define MEDIUM_MAX   ((size_t)32768)
#define MEDIUM_STEPS ((MEDIUM_MAX - SMALL_MAX) / MEDIUM_STEP)
#define LARGE_STEP   (MEDIUM_MAX / CLASSES_PER_DOUBLING)
#define LARGE_STEPS  ((OBJECT_SIZE_MAX - MEDIUM_MAX) / LARGE_STEP)
#define SIZE_PLACES  (SMALL_STEPS + MEDIUM_STEPS + LARGE_STEPS + 1)

/* Classes in use, by place. */
extern HIDDEN struct prudence_cache *ready_classes[SIZE_PLACES];

/* Tables that allocations read. */
struct size_tables {
    /* Classes whose allocation fast path is open. So if all bytes are counted, allocations do not
     * try the fast path without success. */
    struct prudence_cache *open[SIZE_PLACES];
    /* With a profile, the lines of classes whose objects are only to be counted. All other entries
     * are lines that are closed for good, so allocations need no test. */
    void *counted[SIZE_PLACES];
};
extern HIDDEN struct size_tables size_tables;

/* Set before the first class is made: bytes at the end of each object that the program does not
 * get, and whether empty objects have a class of their own. */
extern size_t size_class_spare;
extern bool size_class_of_empty;

/* Called before the first class is made. */
void size_classes_start(void);

/* Sends allocations of all classes to be counted, because a profile has begun. */
void size_classes_begin_counting(void);

/* Returns the bytes of a class's objects. */
size_t size_class_bytes(unsigned class);

/* Formats the name of a cache of one size, "size-48" for example, into CACHE_NAME_SIZE bytes. */
void size_class_name(char *name, const char *kind, size_t size);

/* Returns the largest size that has a class. Where blocks lie between closed pages (guard_large),
 * they do from MEDIUM_MAX on. */
static inline size_t size_class_most(void)
{
    return unlikely(slab_margin) ? MEDIUM_MAX : OBJECT_SIZE_MAX;
}

/* Returns the class of a `size` from 1 to OBJECT_SIZE_MAX. */
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

/* Returns the place of any size, where sizes above `most` have no class. */
static inline __attribute__((always_inline)) size_t size_place_within(size_t size, size_t most)
{
    size_t place = SIZE_PLACES - 1;

    if (likely(size <= SMALL_MAX))
        place = (size + LINEAR_STEP - 1) / LINEAR_STEP;
    else if (likely(size <= MEDIUM_MAX))
        place = SMALL_STEPS + (size - SMALL_MAX - 1) / MEDIUM_STEP;
    else if (most > MEDIUM_MAX && size <= most)
        place = SMALL_STEPS + MEDIUM_STEPS + (size - MEDIUM_MAX - 1) / LARGE_STEP;
    __asm__("" : "+r"(place)); /* keep gcc from scaling the index here, with an extra instruction */
    return place;
}

static inline __attribute__((always_inline)) size_t size_place(size_t size)
{
    return size_place_within(size, OBJECT_SIZE_MAX);
}

/* Returns the cache of an ordinary size whose class is in use already, or NULL. */
static inline __attribute__((always_inline)) struct prudence_cache *size_class_ready(size_t size)
{
    return load_acquire(&ready_classes[size_place(size)]);
}

/* Returns the cache at `place` for the fast path of an allocation. Also NULL if the fast path would
 * fail anyway. */
static inline __attribute__((always_inline)) struct prudence_cache *size_class_open(size_t place)
{
    return load_acquire(&size_tables.open[place]);
}

/* Returns the cache for `size` bytes at `alignment`, making it if necessary. Returns NULL if the
 * object must be a large block, or (with *failed set) if there is no memory for the cache. */
struct prudence_cache *size_class_cache(size_t size, size_t alignment, bool *failed);

#endif /* HEAP_SIZE_CLASS_H */
