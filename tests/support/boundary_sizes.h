/* SPDX-License-Identifier: MIT */
/*
 * Sizes and alignments at which arithmetic goes wrong: near 0, near every limit of the allocator,
 * and near the values that wrap when the allocator adds to, rounds or multiplies them. Tests try
 * each one with both neighbours.
 */
#ifndef TESTS_SUPPORT_BOUNDARY_SIZES_H
#define TESTS_SUPPORT_BOUNDARY_SIZES_H

#include <stddef.h>
#include <stdint.h>

#define BOUNDARY_MIB ((size_t)1 << 20)

/* A size that no system has room for, and one that every system has. */
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
    (size_t)1 << 44,                /* as a number of pages, wraps in 32 bits */
    (size_t)1 << 46,                /* half and all of a process's addresses */
    (size_t)1 << 47,                /**/
    (size_t)1 << 48,                /**/
    (size_t)1 << 62,                /* doubled, exceeds ptrdiff_t */
    PTRDIFF_MAX / 9 * 8,            /* exceeds ptrdiff_t with an eighth added, */
    PTRDIFF_MAX / 5 * 4,            /* or with a quarter added */
    PTRDIFF_MAX - 4095,             /* exceeds ptrdiff_t when rounded to pages, */
    PTRDIFF_MAX - 2 * BOUNDARY_MIB, /* or to the alignment of a huge mapping */
    PTRDIFF_MAX,
    SIZE_MAX / 2 + 4096,
    SIZE_MAX / 9 * 8, /* the smallest that wraps with an eighth added, */
    SIZE_MAX / 9 * 8 + 8,
    SIZE_MAX / 9 * 8 + 4096,  /* two that wrap to a small size, */
    SIZE_MAX / 9 * 8 + 65536, /* this one to the size of the old block */
    SIZE_MAX / 5 * 4,         /* wraps with a quarter added */
    SIZE_MAX / 5 * 4 + 8,
    SIZE_MAX / 3 * 2, /* wraps with a half added */
    SIZE_MAX - 64 * BOUNDARY_MIB,
    SIZE_MAX - 2 * BOUNDARY_MIB,
    SIZE_MAX - 65536,
    SIZE_MAX - 32767,
    SIZE_MAX - 4095, /* wraps when rounded to pages */
    SIZE_MAX - 63,   /* when rounded for metadata */
    SIZE_MAX - 15,   /* when rounded to the step of size classes */
    SIZE_MAX - 7,
    SIZE_MAX,
};
#define BOUNDARY_SIZES (3 * sizeof boundary_sizes / sizeof boundary_sizes[0])

static inline size_t boundary_size(unsigned i)
{
    return boundary_sizes[i / 3] + i % 3 - 1;
}

/* Powers of two and their neighbours, which are not powers of two except for 1 and 2. */
#define BOUNDARY_ALIGNMENTS (3 * 64)
static inline size_t boundary_alignment(unsigned i)
{
    return ((size_t)1 << i / 3) + i % 3 - 1;
}

/* Factors for calloc() and similar functions. */
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
