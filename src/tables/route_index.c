/* SPDX-License-Identifier: MIT */
/* The index of a table of routes, by the first bits of addresses (routes.h). */
#include "tables/route_index.h"
#include "tables/route_words.h"
#include "tables/routes.h"

/* Returns the width of an index for this number of prefixes: the first, of 1 KiB, 64 KiB or 4 MiB.
 * Pages without routes are never touched. */
static unsigned route_index_bits(uint64_t prefixes)
{
    if (prefixes >= UINT64_C(1) << 17)
        return 19;
    return prefixes >= 256 ? 13 : ROUTE_FIRST_BITS;
}

uintptr_t route_index_make(struct route_table *table, uint64_t prefixes)
{
    return route_words_make(table, route_index_bits(prefixes));
}

static size_t route_index_place(uintptr_t index, route_key key)
{
    return (size_t)(key >> (ROUTE_KEY_BITS - route_words_bits(index)));
}

/* Release: a reader that finds the word sees the content of the node. */
void route_index_set(const struct route_table *table, route_key key, uint64_t word)
{
    const uintptr_t index = table->public.index;

    store_release(&route_words(index)[route_index_place(index, key)], word);
}

void route_index_fill(uintptr_t index, route_key key, unsigned length, uint64_t word)
{
    uint64_t *first = &route_words(index)[route_index_place(index, key)];
    const size_t count = (size_t)1 << (route_words_bits(index) - length);

    for (size_t i = 0; i < count; i++)
        store_release(&first[i], word);
}

/* Fills a new index, whose words are 0, from a node of the trie and all below, down to the level of
 * the index. */
static void route_index_fill_words(uintptr_t index, const struct route_node *node, unsigned level,
                                   route_key key)
{
    const unsigned slots = level ? 64 : 2;

    for (unsigned slot = 0; slot < slots; slot++) {
        const route_key below = route_key_with(key, level, slot);
        const uint64_t word = route_word(node, route_longest(node, slot));

        if (!route_has(node->children, slot)) {
            if (word) /* 0 is there already */
                route_index_fill(index, below, route_bits_before(level + 1), word);
        } else if (level + 1 == route_index_level(index)) {
            route_words(index)[route_index_place(index, below)] =
                route_index_node(route_child(node, slot));
        } else {
            route_index_fill_words(index, route_child(node, slot), level + 1, below);
        }
    }
}

static bool route_index_is_wanted(const struct route_table *table)
{
    return route_index_bits(table->prefixes) > route_words_bits(table->public.index);
}

/* Widens the index of a table that has outgrown it. One update in 256 tries to get memory. */
void route_index_follow_count(struct route_table *table)
{
    const uint64_t prefixes = load_relaxed(&table->prefixes);
    uintptr_t index, old = 0;

    if (likely(prefixes % 256 != 0) ||
        route_index_bits(prefixes) <= route_words_bits(load_relaxed(&table->public.index)))
        return;
    index = route_index_make(table, prefixes);
    os_lock_take(&table->lock);
    if (!index) {
        table->refused++;
    } else if (route_index_is_wanted(table)) {
        old = table->public.index;
        route_index_fill_words(index, table->root, 0, 0);
        store_release(&table->public.index, index);
        index = 0;
    }
    os_lock_release(&table->lock);
    route_words_let_go(table, index, old);
}
