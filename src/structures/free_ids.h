/* SPDX-License-Identifier: MIT */
/*
 * Which of 1 << order numbers are free: a tree of bitmaps. A bit of the lowest level is set while its number is free; a bit
 * above is set while the word below is not 0. So the lowest free number is found by one word a level: four for 16 million.
 * Not atomic: the owner serializes.
 */
#ifndef STRUCTURES_FREE_IDS_H
#define STRUCTURES_FREE_IDS_H

#include "base/base.h"

#define FREE_IDS_LEVELS 6 /* 64 to the power of 6 is more than 2 to that of 32 */

struct free_ids {
    uint64_t *levels[FREE_IDS_LEVELS]; /* the lowest is first; they are one block of memory */
    unsigned count;                    /* of levels; the last has one word */
    size_t bytes;                      /* of the block */
};

/* All are free. False: there is no memory. order >= 6. */
bool free_ids_make(struct free_ids *ids, unsigned order);
void free_ids_unmake(const struct free_ids *ids);

/* False: none is free. */
bool free_ids_lowest(const struct free_ids *ids, uint64_t *id);
void free_ids_take(const struct free_ids *ids, uint64_t id);
void free_ids_give(const struct free_ids *ids, uint64_t id);

/* `to` is larger: what is taken in `from` is taken there. */
void free_ids_copy(const struct free_ids *to, const struct free_ids *from);

#endif /* STRUCTURES_FREE_IDS_H */
