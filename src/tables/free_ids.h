/* SPDX-License-Identifier: MIT */
/*
 * A tree of bitmaps that shows which of 1 << order numbers are free. A bit of the lowest level is
 * set while its number is free; a higher bit is set while the word below is not 0. Finding the
 * lowest free number reads one word per level, four for 16 million numbers. The owner serializes
 * all calls, so nothing is atomic.
 */
#ifndef TABLES_FREE_IDS_H
#define TABLES_FREE_IDS_H

#include "base/base.h"

#define FREE_IDS_LEVELS 6 /* 64 to the power of 6 is more than 2 to the power of 32 */

struct free_ids {
    uint64_t *levels[FREE_IDS_LEVELS]; /* lowest first, in one block of memory */
    unsigned count;                    /* levels; the last has one word */
    size_t bytes;                      /* size of the block */
};

/* Makes a tree of free numbers, unless there is no memory. order >= 6. */
bool free_ids_make(struct free_ids *ids, unsigned order);
void free_ids_unmake(const struct free_ids *ids);

/* Finds the lowest free number, if any. */
bool free_ids_lowest(const struct free_ids *ids, uint64_t *id);
void free_ids_take(const struct free_ids *ids, uint64_t id);
void free_ids_give(const struct free_ids *ids, uint64_t id);

/* Takes in `to`, which is larger and all free, each number that is taken in `from`. */
void free_ids_copy(const struct free_ids *to, const struct free_ids *from);

#endif /* TABLES_FREE_IDS_H */
