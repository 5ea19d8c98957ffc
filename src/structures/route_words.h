/* SPDX-License-Identifier: MIT */
/* Arrays of words of a table of routes (see route_words.c). */
#ifndef STRUCTURES_ROUTE_WORDS_H
#define STRUCTURES_ROUTE_WORDS_H

#include "structures/routes.h"

static inline unsigned route_words_bits(uintptr_t words)
{
    return (unsigned)(words & PRUDENCE_ROUTES_BITS_MASK);
}

static inline uint64_t *route_words(uintptr_t words)
{
    return (uint64_t *)(words & ~(uintptr_t)PRUDENCE_ROUTES_BITS_MASK);
}

static inline size_t route_words_bytes(uintptr_t words)
{
    return sizeof(uint64_t) << route_words_bits(words);
}

/* Allocates 2^bits words that are 0, or returns 0. */
uintptr_t route_words_make(const struct route_table *table, unsigned bits);

/* Without the lock: frees `unused`, which no reader has seen, and defers `replaced`. Either may be
 * 0. */
void route_words_let_go(const struct route_table *table, uintptr_t unused, uintptr_t replaced);

#endif /* STRUCTURES_ROUTE_WORDS_H */
