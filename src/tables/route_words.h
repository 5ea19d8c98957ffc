/* SPDX-License-Identifier: MIT */
/* Arrays of words of a table of routes (see route_words.c). */
#ifndef TABLES_ROUTE_WORDS_H
#define TABLES_ROUTE_WORDS_H

#include "tables/routes.h"

static inline unsigned route_words_bits(uintptr_t words)
{
    return (unsigned)(words & PRUDENCE_ROUTES_BITS_MASK);
}

static inline uint64_t *route_words(uintptr_t words)
{
    return (uint64_t *)(words & ~(uintptr_t)(PRUDENCE_ROUTES_AREAS | PRUDENCE_ROUTES_BITS_MASK));
}

static inline size_t route_words_bytes(uintptr_t words)
{
    return sizeof(uint64_t) << route_words_bits(words);
}

#define ROUTE_FIRST_BITS  7u
#define ROUTE_FIRST_WORDS (1u << ROUTE_FIRST_BITS)

/* Allocates 2^bits words that are 0, or returns 0. The smallest arrays, which only a new table asks
 * for, are in the table. */
uintptr_t route_words_make(struct route_table *table, unsigned bits);

/* Returns the bytes of the words outside of the table. */
size_t route_words_outside(const struct route_table *table, uintptr_t words);

/* Without the lock: frees `unused`, which no reader has seen, and defers `replaced`. Either may be
 * 0. */
void route_words_let_go(const struct route_table *table, uintptr_t unused, uintptr_t replaced);

#endif /* TABLES_ROUTE_WORDS_H */
