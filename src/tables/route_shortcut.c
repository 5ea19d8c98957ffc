/* SPDX-License-Identifier: MIT */
/*
 * Shortcuts of a table of IPv6 routes: an array of the nodes that edges across level 6 lead to, by
 * a hash of the 31 bits before that level. A lookup that finds its node there skips the levels
 * above.
 *
 * The array is a help, not the truth. A slot has one of the edges whose bits hash to the slot, or
 * none. The reader compares the address with the node's path, and starts from the index if they
 * differ.
 *
 * An update always stores to the slot before it stores to the edge's place in the trie. So a node
 * that is no longer in the trie is in no slot, and for each address the store to the slot is the
 * one that changes the answer. A lookup that does not find the node in the slot may get the older
 * answer of the trie, because it began before that store, or before the array was published; or the
 * edge has no slot, before and after.
 *
 * A replaced array is no longer stored to, so a slow reader finds there an answer that was right at
 * the replacement (routes.h).
 *
 * Updates of the array run under the lock.
 */
#include "tables/route_shortcut.h"
#include "tables/route_words.h"
#include "tables/routes.h"

#define BITS_LEAST                                                                                 \
    9u /* slots that fit a page; the first shortcuts, which the table has, are fewer */
#define BITS_MOST 31u
#define SPARSE    4u /* minimum of slots for each edge, while the array can grow */
_Static_assert(BITS_MOST <= PRUDENCE_ROUTES_BITS_MASK, "the word of an array has the number");

static unsigned route_shortcut_bits(uint64_t edges)
{
    unsigned bits = BITS_LEAST;

    if (edges <= ROUTE_FIRST_WORDS / SPARSE)
        return ROUTE_FIRST_BITS;
    while (bits < BITS_MOST && edges > (UINT64_C(1) << bits) / SPARSE)
        bits++;
    return bits;
}

uintptr_t route_shortcuts_make(struct route_table *table, uint64_t edges)
{
    return route_words_make(table, route_shortcut_bits(edges));
}

static bool is_across(unsigned above, unsigned level)
{
    return above < ROUTE_LEVEL_SHORTCUT && level >= ROUTE_LEVEL_SHORTCUT;
}

static uint64_t *route_shortcut_slot(uintptr_t shortcuts, const struct route_node *node,
                                     unsigned level)
{
    const uint64_t high = *route_path(node) << (64 - route_bits_before(level));

    return (uint64_t *)(uintptr_t)prudence_routes_word_(shortcuts, prudence_routes_hash_(high));
}

/* Release: a reader that finds the node sees the content. */
static void set(uintptr_t shortcuts, const struct route_node *old, const struct route_node *node,
                unsigned level)
{
    uint64_t *slot = route_shortcut_slot(shortcuts, node, level);

    if (!*slot || (old && route_edge_node(*slot) == old))
        store_release(slot, (uint64_t)(uintptr_t)node | (uint64_t)route_bits_before(level)
                                                            << PRUDENCE_ROUTES_SKIP_SHIFT);
}

void route_shortcut_add(struct route_table *table, unsigned above, const struct route_node *node,
                        unsigned level)
{
    if (!table->node_front || !is_across(above, level))
        return;
    count_add(&table->edges_across, 1);
    set(table->public.shortcuts, NULL, node, level);
}

void route_shortcut_replace(const struct route_table *table, unsigned above, uint64_t old,
                            const struct route_node *node, unsigned level)
{
    if (table->node_front && is_across(above, level) &&
        above + 1 + route_edge_levels(old) >= ROUTE_LEVEL_SHORTCUT)
        set(table->public.shortcuts, route_edge_node(old), node, level);
}

void route_shortcut_remove(struct route_table *table, unsigned above, const struct route_node *node,
                           unsigned level)
{
    uint64_t *slot;

    if (!table->node_front || !is_across(above, level))
        return;
    count_add(&table->edges_across, (uint64_t)-1);
    slot = route_shortcut_slot(table->public.shortcuts, node, level);
    if (route_edge_node(*slot) == node)
        store_release(slot, 0);
}

static void route_shortcut_fill(uintptr_t shortcuts, const struct route_node *node, unsigned level)
{
    for (uint64_t slots = node->children; slots; slots &= slots - 1) {
        const uint64_t edge = route_child_edge(node, (unsigned)__builtin_ctzll(slots));
        const unsigned below = level + 1 + route_edge_levels(edge);

        if (is_across(level, below))
            set(shortcuts, NULL, route_edge_node(edge), below);
        else
            route_shortcut_fill(shortcuts, route_edge_node(edge), below);
    }
}

static bool route_shortcut_is_wanted(const struct route_table *table)
{
    return route_shortcut_bits(load_relaxed(&table->edges_across)) >
           route_words_bits(load_relaxed(&table->public.shortcuts));
}

static bool route_shortcut_is_time(const struct route_table *table)
{
    const bool first = route_words_bits(load_relaxed(&table->public.shortcuts)) == ROUTE_FIRST_BITS;

    return unlikely(load_relaxed(&table->prefixes) % (first ? 16 : 256) == 0);
}

/* Replaces the array of a table that has too few slots. One update in 256 tries to get memory, or
 * one in 16 while the table has its first array. */
void route_shortcuts_follow_count(struct route_table *table)
{
    uintptr_t shortcuts, old = 0;

    if (!table->node_front || !route_shortcut_is_time(table) || !route_shortcut_is_wanted(table))
        return;
    shortcuts = route_shortcuts_make(table, load_relaxed(&table->edges_across));
    os_lock_take(&table->lock);
    if (!shortcuts) {
        table->refused++;
    } else if (route_shortcut_is_wanted(table)) {
        old = table->public.shortcuts;
        route_shortcut_fill(shortcuts, table->root, 0);
        store_release(&table->public.shortcuts, shortcuts);
        shortcuts = 0;
    }
    os_lock_release(&table->lock);
    route_words_let_go(table, shortcuts, old);
}
