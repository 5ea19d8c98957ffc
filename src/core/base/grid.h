/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Finds the object at an offset in a row of equal objects, if an object starts there.
 *
 * With r = floor(2^64 / stride) + 1 and e = r x stride - 2^64 (so 0 < e <= stride), the product of
 * r and an offset q x stride + rest is q x 2^64 + q x e + rest x r. At the start of an object the
 * low half is q x e. Anywhere else the low half is at least r, which is more than any q x e of a
 * slab. The high half is then q. An offset before the first object wraps, to a low half near 2^64.
 * So one multiplication and one comparison check alignment and range at once, on the path of every
 * free (after Lemire, Kaser and Kurz 2019, "Faster remainder by direct computation").
 *
 * This is exact, because nothing wraps, as long as |offset| and count x stride are below
 * GRID_BYTES_MAX and the stride is at most GRID_STRIDE_MAX. A single object may have any size.
 */
#ifndef BASE_GRID_H
#define BASE_GRID_H

#include "base/base.h"

#define GRID_STRIDE_MAX (UINT64_C(1) << 20)
#define GRID_BYTES_MAX  (UINT64_C(1) << 23)

__extension__ typedef unsigned __int128 product128;

struct grid {
    uint64_t reciprocal;
    uint64_t end; /* limit of the low halves */
};

/* `stride` is at least 2, `count` at least 1. */
static inline struct grid grid_of(uint64_t stride, uint64_t count)
{
    uint64_t reciprocal = UINT64_MAX / stride + 1;

    if (count == 1)
        return (struct grid){.reciprocal = 1, .end = 1};
    if ((stride & (stride - 1)) == 0)
        reciprocal++; /* 2^64 / stride is whole, and UINT64_MAX / stride one less */
    return (struct grid){.reciprocal = reciprocal, .end = count * (reciprocal * stride)};
}

static inline bool grid_has(struct grid grid, uint64_t offset)
{
    return offset * grid.reciprocal < grid.end;
}

/* Returns the number of the object at an offset for which grid_has() is true. */
static inline unsigned grid_index(struct grid grid, uint64_t offset)
{
    return (unsigned)((product128)offset * grid.reciprocal >> 64);
}

#endif /* BASE_GRID_H */
