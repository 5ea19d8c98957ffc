/* SPDX-License-Identifier: MIT */
/*
 * Arrays of words that a table of routes publishes and replaces by larger ones: the index and the
 * shortcuts. They come from the table's cache of large blocks. One word names an array by the
 * address and, in the lowest bits, the logarithm of the number of words.
 */
#include <prudence/structure.h>

#include "structures/route_words.h"
#include "structures/routes.h"

uintptr_t route_words_make(const struct route_table *table, unsigned bits)
{
    const size_t bytes = sizeof(uint64_t) << bits;
    bool zeroed;
    void *words = prudence_cache_alloc_block(table->indexes, bytes, &zeroed);

    if (!words)
        return 0;
    if (!zeroed)
        fill_unseen(words, 0, bytes);
    return (uintptr_t)words | bits;
}

void route_words_let_go(const struct route_table *table, uintptr_t unused, uintptr_t replaced)
{
    if (unused)
        prudence_cache_free(table->indexes, route_words(unused));
    if (replaced)
        prudence_cache_free_deferred(table->indexes, route_words(replaced));
}
