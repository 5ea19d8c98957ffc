/* SPDX-License-Identifier: MIT */
/*
 * Arrays of words that a table of routes publishes and replaces by larger ones: the index and the
 * shortcuts. They come from the table's cache of large blocks, except the first ones, which lie in
 * the table and stay there when they are replaced. One word names an array by the
 * address and, in the lowest bits, the logarithm of the number of words.
 */
#include <prudence/structure.h>

#include "tables/route_words.h"
#include "tables/routes.h"

static bool is_in_table(const struct route_table *table, uintptr_t words)
{
    return route_words(words) >= table->first &&
           route_words(words) < table->first + (size_t)table->firsts * ROUTE_FIRST_WORDS;
}

size_t route_words_outside(const struct route_table *table, uintptr_t words)
{
    return words && !is_in_table(table, words) ? route_words_bytes(words) : 0;
}

uintptr_t route_words_make(struct route_table *table, unsigned bits)
{
    const size_t bytes = sizeof(uint64_t) << bits;
    struct prudence_cache *cache = load_acquire(&table->indexes);
    bool zeroed;
    void *words;

    if (bits == ROUTE_FIRST_BITS && !(table->public.index && table->public.shortcuts))
        return (uintptr_t)&table->first[(size_t)ROUTE_FIRST_WORDS * table->firsts++] | bits;
    if (!cache)
        cache = own_cache_make_blocks(&table->indexes, &table->owner);
    words = cache ? prudence_cache_alloc_block(cache, bytes, &zeroed) : NULL;
    if (!words)
        return 0;
    if (!zeroed)
        fill_unseen(words, 0, bytes);
    return (uintptr_t)words | bits;
}

void route_words_let_go(const struct route_table *table, uintptr_t unused, uintptr_t replaced)
{
    if (route_words_outside(table, unused))
        prudence_cache_free(table->indexes, route_words(unused));
    if (route_words_outside(table, replaced))
        prudence_cache_free_deferred(table->indexes, route_words(replaced));
}
