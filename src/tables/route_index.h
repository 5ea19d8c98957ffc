/* SPDX-License-Identifier: MIT */
/* The index of a table of routes (see route_index.c). */
#ifndef TABLES_ROUTE_INDEX_H
#define TABLES_ROUTE_INDEX_H

#include "tables/route_words.h"

/* Returns the level at which lookups in the trie begin. */
static inline unsigned route_index_level(uintptr_t index)
{
    return (route_words_bits(index) + 5) / 6;
}

/* Returns the word of a node in the index. A value stands for itself. */
static inline uint64_t route_index_node(const struct route_node *node)
{
    return 0 - (uint64_t)(uintptr_t)node;
}

/* Makes an empty index for this number of prefixes, or returns 0. */
uintptr_t route_index_make(struct route_table *table, uint64_t prefixes);

/* Under the lock: store the word of the key, or all words below a prefix that is not longer than
 * the index is wide. */
void route_index_set(const struct route_table *table, route_key key, uint64_t word);
void route_index_fill(uintptr_t index, route_key key, unsigned length, uint64_t word);

/* Without the lock, after an update: widens the index if the number of prefixes asks for it. */
void route_index_follow_count(struct route_table *table);

#endif /* TABLES_ROUTE_INDEX_H */
