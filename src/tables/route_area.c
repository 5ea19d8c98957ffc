/* SPDX-License-Identifier: MIT */
/*
 * Areas of the index. A small table has many of its prefixes in few places, for example a network
 * of 10.0.0.0/8 with a prefix for each site. There a word for each value of 25 bits costs little,
 * and a lookup finds prefixes of up to 24 bits, and the nodes of longer ones, without the trie. So
 * a word of the index may lead to an area, which has the words for the 12 bits after the 13 of the
 * index. Words of an area are as those of an index, and updates store to them in the same way.
 *
 * An area is made after an update that leaves a node with many words below it, and stays until the
 * index is replaced. A table that is not small has no areas, because most of its words would be in
 * no cache of the processor.
 */
#include "tables/route_area.h"

bool route_area_is_wanted(const struct route_table *table, route_key key, unsigned level,
                          unsigned words)
{
    const uintptr_t index = table->public.index;

    return unlikely(index & PRUDENCE_ROUTES_AREAS) && words >= ROUTE_AREA_WORDS &&
           level == route_level_of(PRUDENCE_ROUTES_AREA_END) - 1 &&
           table->areas < ROUTE_AREAS_MOST && route_index_level(index, key) <= level;
}

/* Under the lock, fills an area that no reader sees, and publishes it. Each address has the same
 * answer by the area. */
static void publish(struct route_table *table, route_key key, uintptr_t words)
{
    const struct route_span index = route_index_span(table->public.index);
    const uint64_t word = 1 - (uint64_t)(uintptr_t)route_words(words);
    const struct route_span area = route_area_span(word);
    uint64_t *place = route_span_word(&index, key);

    route_span_fill(
        &area, (const struct route_node *)(uintptr_t)(0 - *place), route_span_level(&index),
        key >> (ROUTE_KEY_BITS - ROUTE_AREA_BEFORE) << (ROUTE_KEY_BITS - ROUTE_AREA_BEFORE));
    store_release(place, word);
    table->areas++;
}

void route_area_add(struct route_table *table, route_key key)
{
    uintptr_t words = route_words_make(table, PRUDENCE_ROUTES_AREA_BITS);
    struct route_span index;

    os_lock_take(&table->lock);
    index = route_index_span(table->public.index);
    if (!words) {
        table->refused++;
    } else if (table->public.index & PRUDENCE_ROUTES_AREAS && table->areas < ROUTE_AREAS_MOST &&
               *route_span_word(&index, key) & PRUDENCE_ROUTES_NODE &&
               !route_is_area(*route_span_word(&index, key))) {
        publish(table, key, words);
        words = 0;
    }
    os_lock_release(&table->lock);
    route_words_let_go(table, words, 0);
}

size_t route_areas_bytes(const struct route_table *table)
{
    return table->areas * (sizeof(uint64_t) << PRUDENCE_ROUTES_AREA_BITS);
}
