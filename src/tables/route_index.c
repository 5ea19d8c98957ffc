/* SPDX-License-Identifier: MIT */
/* The index of a table of routes, by the first bits of addresses (routes.h). */
#include "tables/route_area.h"
#include "tables/route_index.h"
#include "tables/route_words.h"
#include "tables/routes.h"

/* Indexes by the number of prefixes: the first, of 1 KiB, 64 KiB or 4 MiB, in the form of the
 * table's first word. Pages without routes are never touched. A table of IPv4 has areas while it is
 * small. */
static const uintptr_t steps[] = {ROUTE_FIRST_BITS, PRUDENCE_ROUTES_AREAS | ROUTE_AREA_BEFORE,
                                  ROUTE_AREA_BEFORE, 19};

static unsigned route_index_step(const struct route_table *table, uint64_t prefixes)
{
    if (prefixes >= UINT64_C(1) << 17)
        return 3;
    if (prefixes < 256)
        return 0;
    return prefixes < ROUTE_AREA_PREFIXES && table->may_have_areas ? 1 : 2;
}

static unsigned step_of(uintptr_t index)
{
    unsigned step = 0;

    while (steps[step] != (index & (PRUDENCE_ROUTES_AREAS | PRUDENCE_ROUTES_BITS_MASK)))
        step++;
    return step;
}

uintptr_t route_index_make(struct route_table *table, uint64_t prefixes)
{
    const uintptr_t step = steps[route_index_step(table, prefixes)];
    const uintptr_t words = route_words_make(table, route_words_bits(step));

    return words ? words | step : 0;
}

struct route_span route_index_find(uintptr_t index, route_key key)
{
    const struct route_span span = route_index_span(index);
    const uint64_t word = *route_span_word(&span, key);

    return route_is_area(word) ? route_area_span(word) : span;
}

/* Release: a reader that finds the word sees the content of the node. */
void route_index_set(const struct route_table *table, route_key key, uint64_t word)
{
    const struct route_span span = route_index_find(table->public.index, key);

    store_release(route_span_word(&span, key), word);
}

/* Stores the word in all places below the prefix, also in areas. */
static void route_index_store(const struct route_span *span, route_key key, unsigned length,
                              uint64_t word)
{
    uint64_t *first = route_span_word(span, key);
    const size_t count = (size_t)1 << (span->before + span->bits - length);

    for (size_t i = 0; i < count; i++) {
        if (unlikely(route_is_area(first[i]))) {
            const struct route_span area = route_area_span(first[i]);

            route_index_store(&area, 0, area.before, word);
        } else {
            store_release(&first[i], word);
        }
    }
}

void route_index_fill(uintptr_t index, route_key key, unsigned length, uint64_t word)
{
    const struct route_span all = route_index_span(index);
    const struct route_span span = length > all.bits ? route_index_find(index, key) : all;

    route_index_store(&span, key, length, word);
}

void route_span_fill(const struct route_span *span, const struct route_node *node, unsigned level,
                     route_key key)
{
    const unsigned slots = level ? 64 : 2;

    for (unsigned slot = 0; slot < slots; slot++) {
        const route_key below = route_key_with(key, level, slot);
        const uint64_t word = route_word(node, route_longest(node, slot));

        if (!route_has(node->children, slot)) {
            if (word) /* 0 is there already */
                route_index_store(span, below, route_bits_before(level + 1), word);
        } else if (level + 1 == route_span_level(span)) {
            *route_span_word(span, below) = route_index_node(route_child(node, slot));
        } else {
            route_span_fill(span, route_child(node, slot), level + 1, below);
        }
    }
}

void route_index_drop_areas(const struct route_table *table, uintptr_t index, bool is_deferred)
{
    const struct route_span span = route_index_span(index);

    if (!(index & PRUDENCE_ROUTES_AREAS))
        return;
    for (size_t i = 0; i < (size_t)1 << span.bits; i++) {
        const uint64_t word = span.words[i];
        uintptr_t words;

        if (!route_is_area(word))
            continue;
        words = (uintptr_t)route_area_span(word).words | PRUDENCE_ROUTES_AREA_BITS;
        route_words_let_go(table, is_deferred ? 0 : words, is_deferred ? words : 0);
    }
}

static bool route_index_is_wanted(const struct route_table *table)
{
    return route_index_step(table, table->prefixes) > step_of(table->public.index);
}

/* Widens the index of a table that has outgrown it. One update in 256 tries to get memory. */
void route_index_follow_count(struct route_table *table)
{
    const uint64_t prefixes = load_relaxed(&table->prefixes);
    struct route_span span;
    uintptr_t index, old = 0;

    if (likely(prefixes % 256 != 0) ||
        route_index_step(table, prefixes) <= step_of(load_relaxed(&table->public.index)))
        return;
    index = route_index_make(table, prefixes);
    os_lock_take(&table->lock);
    if (!index) {
        table->refused++;
    } else if (route_index_is_wanted(table)) {
        old = table->public.index;
        span = route_index_span(index);
        route_span_fill(&span, table->root, 0, 0);
        store_release(&table->public.index, index);
        table->areas = 0;
        index = 0;
    }
    os_lock_release(&table->lock);
    route_index_drop_areas(table, old, true);
    route_words_let_go(table, index, old);
}
