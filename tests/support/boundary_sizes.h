/* SPDX-License-Identifier: MIT */
/*
 * Sizes and alignments at which arithmetic goes wrong: around 0, every limit of the allocator's, and
 * what wraps when something is added to it, or when it is rounded or multiplied. Each is tried with
 * its two neighbours.
 */
#ifndef TESTS_SUPPORT_BOUNDARY_SIZES_H
#define TESTS_SUPPORT_BOUNDARY_SIZES_H

#include <stddef.h>
#include <stdint.h>

#define BOUNDARY_MIB ((size_t)1 << 20)

/* What no system of ours has room for, and what every one has. */
#define BOUNDARY_NEVER ((size_t)PTRDIFF_MAX)
#define BOUNDARY_SURE  (65 * BOUNDARY_MIB)

static const size_t boundary_sizes[] = {
    0,
    16,
    128,                            /* classes 16 bytes apart end */
    1024,                           /* the table of small classes ends */
    4096,                           /* a page */
    16384,                          /* half of the largest object */
    32768,                          /* the largest object */
    65536,                          /* a large block */
    2 * BOUNDARY_MIB,               /* a run that becomes a huge mapping when it grows */
    32 * BOUNDARY_MIB,              /* the largest run */
    64 * BOUNDARY_MIB,              /* a region */
    (size_t)1 << 32,                /* wraps in 32 bits */
    (size_t)1 << 44,                /* so many pages wrap in 32 bits */
    (size_t)1 << 46,                /* addresses of a process, and half of them */
    (size_t)1 << 47,                /**/
    (size_t)1 << 48,                /**/
    (size_t)1 << 62,                /* doubled: more than a difference of pointers */
    PTRDIFF_MAX / 9 * 8,            /* the same, with an eighth added, */
    PTRDIFF_MAX / 5 * 4,            /* or a quarter */
    PTRDIFF_MAX - 4095,             /* rounded to pages, */
    PTRDIFF_MAX - 2 * BOUNDARY_MIB, /* or to what a huge mapping begins at */
    PTRDIFF_MAX,
    SIZE_MAX / 2 + 4096,
    SIZE_MAX / 9 * 8, /* wraps with an eighth added: the least such, */
    SIZE_MAX / 9 * 8 + 8,
    SIZE_MAX / 9 * 8 + 4096,  /* and some that come out small, */
    SIZE_MAX / 9 * 8 + 65536, /* as small as the old block */
    SIZE_MAX / 5 * 4,         /* with a quarter added */
    SIZE_MAX / 5 * 4 + 8,
    SIZE_MAX / 3 * 2, /* with half of it added */
    SIZE_MAX - 64 * BOUNDARY_MIB,
    SIZE_MAX - 2 * BOUNDARY_MIB,
    SIZE_MAX - 65536,
    SIZE_MAX - 32767,
    SIZE_MAX - 4095, /* rounded to pages */
    SIZE_MAX - 63,   /* to metadata */
    SIZE_MAX - 15,   /* to the step of size classes */
    SIZE_MAX - 7,
    SIZE_MAX,
};
#define BOUNDARY_SIZES (3 * sizeof boundary_sizes / sizeof boundary_sizes[0])

/* The `i`th of BOUNDARY_SIZES. */
static inline size_t boundary_size(unsigned i)
{
    return boundary_sizes[i / 3] + i % 3 - 1;
}

/* Powers of two and their neighbours, which are none (except 1 and 2): BOUNDARY_ALIGNMENTS of them. */
#define BOUNDARY_ALIGNMENTS (3 * 64)
static inline size_t boundary_alignment(unsigned i)
{
    return ((size_t)1 << i / 3) + i % 3 - 1;
}

/* Factors for calloc and its like. */
static const size_t boundary_factors[] = {0,
                                          1,
                                          2,
                                          3,
                                          16,
                                          4096,
                                          (size_t)1 << 31,
                                          (size_t)1 << 32,
                                          ((size_t)1 << 32) + 1,
                                          (size_t)1 << 33,
                                          SIZE_MAX / 4096,
                                          SIZE_MAX / 4096 + 1,
                                          SIZE_MAX / 16 + 1,
                                          SIZE_MAX / 3,
                                          SIZE_MAX / 3 + 1,
                                          SIZE_MAX / 2,
                                          SIZE_MAX / 2 + 1,
                                          SIZE_MAX - 1,
                                          SIZE_MAX};
#define BOUNDARY_FACTORS (sizeof boundary_factors / sizeof boundary_factors[0])

#endif /* TESTS_SUPPORT_BOUNDARY_SIZES_H */
