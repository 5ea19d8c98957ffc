/* SPDX-License-Identifier: MIT */
/* The index of a table of routes (see route_index.c). */
#ifndef TABLES_ROUTE_INDEX_H
#define TABLES_ROUTE_INDEX_H

#include "tables/route_words.h"
#include "tables/routes.h"

/*
 * Words that bits of addresses select: those of the index, which no bits come before, or those of
 * an area (route_area.c).
 */
struct route_span {
    uint64_t *words;
    unsigned before, bits;
};

static inline struct route_span route_index_span(uintptr_t index)
{
    return (struct route_span){route_words(index), 0, route_words_bits(index)};
}

static inline uint64_t *route_span_word(const struct route_span *span, route_key key)
{
    return &span->words[(size_t)(key << span->before >> (ROUTE_KEY_BITS - span->bits))];
}

/* Returns the level of the nodes that the words lead to. */
static inline unsigned route_span_level(const struct route_span *span)
{
    return (span->before + span->bits + 5) / 6;
}

/* Returns the words that a lookup of this key finds before it gets to the trie. */
struct route_span route_index_find(uintptr_t index, route_key key);

/* Returns the level at which a lookup of this key gets to the trie. If the level is compared with
 * one up to that of the index, the key needs no more bits than that one has before it. */
static inline unsigned route_index_level(uintptr_t index, route_key key)
{
    const struct route_span span = route_index_find(index, key);

    return route_span_level(&span);
}

/* Returns the word of a node in the index. A value stands for itself. */
static inline uint64_t route_index_node(const struct route_node *node)
{
    return 0 - (uint64_t)(uintptr_t)node;
}

/* Makes an empty index for this number of prefixes, or returns 0. */
uintptr_t route_index_make(struct route_table *table, uint64_t prefixes);

/* Under the lock: store the word of the key, or all words below a prefix that is not longer than
 * the index, or its area, is wide. */
void route_index_set(const struct route_table *table, route_key key, uint64_t word);
void route_index_fill(uintptr_t index, route_key key, unsigned length, uint64_t word);

/* Fills words that are 0 and that no reader sees from a node of the trie, of this level, and all
 * nodes below, down to the level of the words. */
void route_span_fill(const struct route_span *span, const struct route_node *node, unsigned level,
                     route_key key);

/* Without the lock: frees the areas of an index that no update stores to, or defers them. 0 and an
 * index without areas are ignored. */
void route_index_drop_areas(const struct route_table *table, uintptr_t index, bool is_deferred);

/* Without the lock, after an update: widens the index if the number of prefixes asks for it. */
void route_index_follow_count(struct route_table *table);

#endif /* TABLES_ROUTE_INDEX_H */
