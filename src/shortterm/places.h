/* SPDX-License-Identifier: MIT */
/*
 * Tables behind handles. Private to scm/. The lower half of a handle is the number of a place in a
 * table, the upper half the number of uses of that place. So each handle is given out once, and a
 * handle kept for too long is refused, whatever became of the place since. A place that was used
 * 2^32 times is not used again.
 *
 * A table grows by blocks that are never freed, each twice as large as the one before, so other
 * threads may read any place at any time. It grows under scm_lock.
 */
#ifndef SHORTTERM_PLACES_H
#define SHORTTERM_PLACES_H

#include "base/atomic.h"
#include "base/base.h"

#define PLACES_FIRST_BITS 4 /* the first block has 16 places */
#define PLACES_BLOCKS     29

struct places {
    void *blocks[PLACES_BLOCKS]; /* made under scm_lock, read by any thread */
    uint32_t used;               /* places given out so far; scm_lock */
    uint32_t size;               /* bytes of a place */
};

static inline uint64_t handle_of(uint64_t turn, uint32_t place)
{
    return turn << 32 | place;
}

static inline uint64_t handle_turn(uint64_t handle)
{
    return handle >> 32;
}

static inline uint64_t places_block_size(unsigned block)
{
    return UINT64_C(1) << (block + PLACES_FIRST_BITS);
}

/* Returns the block of a place, and the index in the block. These are the highest bit, and the bits
 * below, of the sum of the place and the size of the first block. */
static inline unsigned places_block_of(uint32_t place, uint64_t *within)
{
    uint64_t from_first = place + places_block_size(0);
    unsigned highest = 63 - (unsigned)__builtin_clzll(from_first);

    *within = from_first ^ UINT64_C(1) << highest;
    return highest - PLACES_FIRST_BITS;
}

/* Returns the address of a place, or NULL if it does not exist yet. `size` is the table's, passed
 * as a constant where this is inlined. */
static inline void *places_at(const struct places *places, uint32_t place, size_t size)
{
    uint64_t within;
    char *first = load_acquire(&places->blocks[places_block_of(place, &within)]);

    return likely(first) ? first + within * size : NULL;
}

/* Adds a zeroed place and passes back the number. Returns NULL if there is no memory. Called under
 * scm_lock. */
void *places_new(struct places *places, uint32_t *number);

#endif /* SHORTTERM_PLACES_H */
