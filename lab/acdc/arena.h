/* SPDX-License-Identifier: MIT */
/*
 * Memory for ACDC's own books, from the system, so that the allocator under test sees its workload
 * and nothing else. Blocks are powers of two; a free one is in the list of its size. Each mutator
 * has a separate arena. A block may end in another arena than it came from, with the shared
 * objects that it describes.
 */
#ifndef ACDC_ARENA_H
#define ACDC_ARENA_H

#include <stddef.h>

#define ARENA_POWERS 48

struct arena {
    void *free[ARENA_POWERS]; /* lists by log2 of the size; the first word of a block links it */
    char *next, *end;         /* the run that small blocks are cut from */
    size_t mapped;            /* bytes */
};

/* Takes a block of at least `size` bytes, aligned to 16, with undefined contents. Returns NULL
 * if the system has no memory. */
void *arena_take(struct arena *arena, size_t size);

/* Returns a block that was taken with this size, from this or any other arena. */
void arena_give(struct arena *arena, void *block, size_t size);

#endif /* ACDC_ARENA_H */
