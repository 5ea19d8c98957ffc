/* SPDX-License-Identifier: MIT */
/* Finds routes by their own prefix, and all of them in order (routes.h). */
#include "tables/routes.h"

uintptr_t prudence_routes_get(const struct prudence_routes *public,
                              const struct prudence_routes_prefix *prefix)
{
    const struct route_table *table = route_table_of(public);
    const struct route_node *node;
    unsigned level, bit, at = 0;
    route_key key;

    if (!route_prefix_key(table, prefix, &key))
        return 0;
    level = route_level_of(prefix->length);
    node = load_acquire(&table->root);
    while (at < level) {
        uint64_t edge;

        if (!route_has(node->children, route_slot(key, at)))
            return 0;
        edge = route_child_edge(node, route_slot(key, at));
        at += 1 + route_edge_levels(edge);
        if (!route_is_on_the_way(edge, at, key, level))
            return 0;
        node = route_edge_node(edge);
    }
    bit = route_bit(key, prefix->length);
    return route_has(node->prefixes, bit) ? route_found(table, route_word(node, bit)) : 0;
}

/* ---------------------------------------------------------------------------------------- walks */

/*
 * A place in the trie: a bit of a node, or a slot as 64 + slot (route_node.h), and the nodes above.
 * The order of prefixes is the pre-order of bits: a bit, all below its first half, all below the
 * other half.
 */
struct spot {
    const struct route_node *path[ROUTE_LEVELS];
    unsigned char levels[ROUTE_LEVELS];
    unsigned depth, level, bit; /* number and level of the last node, and the bit */
    route_key key;              /* bits that lead to the node */
};

static void go_along(struct spot *spot, unsigned slot, uint64_t edge)
{
    const unsigned level = spot->level + 1 + route_edge_levels(edge);

    spot->key = route_key_along(route_key_with(spot->key, spot->level, slot), spot->level, edge);
    spot->path[++spot->depth] = route_edge_node(edge);
    spot->levels[spot->depth] = (unsigned char)level;
    spot->level = level;
    spot->bit = ROUTE_FIRST;
}

/* The position of a prefix, or the one that it would have. */
enum where {
    HERE,        /* at the bit */
    FROM_HERE,   /* followed by all that is in or after this slot */
    BEHIND_HERE, /* after all that is in this slot */
};

static enum where route_read_go_to(struct spot *spot, const struct route_table *table,
                                   route_key key, unsigned length)
{
    const unsigned level = route_level_of(length);

    *spot = (struct spot){.path = {load_acquire(&table->root)}};
    while (spot->level < level) {
        const unsigned slot = route_slot(key, spot->level);
        unsigned below;
        uint64_t edge;

        spot->bit = 64 + slot;
        if (!route_has(spot->path[spot->depth]->children, slot))
            return FROM_HERE;
        edge = route_child_edge(spot->path[spot->depth], slot);
        below = spot->level + 1 + route_edge_levels(edge);
        if (!route_is_on_the_way(edge, below, key, level))
            return route_path_of(key, below) > *route_path(route_edge_node(edge)) ? BEHIND_HERE
                                                                                  : FROM_HERE;
        go_along(spot, slot, edge);
    }
    spot->bit = route_bit(key, length);
    return HERE;
}

/* Moves past all below this place. Returns false at the end. */
static bool go_past(struct spot *spot)
{
    for (;;) {
        while (spot->bit & 1)
            spot->bit >>= 1;
        if (spot->bit) {
            spot->bit++;
            return true;
        }
        if (spot->depth == 0)
            return false;
        spot->level = spot->levels[--spot->depth];
        spot->bit = 64 + route_slot(spot->key, spot->level);
    }
}

/* Moves on to a prefix, unless this place is one. Returns false at the end. */
static bool go_to_prefix(struct spot *spot)
{
    for (;;) {
        const struct route_node *node = spot->path[spot->depth];

        if (spot->bit < 64) {
            if (route_has(node->prefixes, spot->bit))
                return true;
            spot->bit *= 2;
        } else if (route_has(node->children, spot->bit - 64)) {
            go_along(spot, spot->bit - 64, route_child_edge(node, spot->bit - 64));
        } else if (!go_past(spot)) {
            return false;
        }
    }
}

static unsigned length_at(const struct spot *spot)
{
    return 6 * spot->level + route_bit_length(spot->bit) - 5;
}

static route_key key_at(const struct spot *spot)
{
    return route_key_with(spot->key, spot->level, route_first_slot(spot->bit));
}

static bool is_within(route_key key, unsigned length, route_key within, unsigned within_length)
{
    return length >= within_length &&
           (within_length == 0 || (key ^ within) >> (ROUTE_KEY_BITS - within_length) == 0);
}

uintptr_t prudence_routes_first(struct prudence_routes_walk *walk,
                                const struct prudence_routes *table,
                                const struct prudence_routes_prefix *within)
{
    static const struct prudence_routes_prefix all;

    *walk = (struct prudence_routes_walk){.within = within ? *within : all, .table = table};
    walk->prefix = walk->within;
    return prudence_routes_next(walk);
}

uintptr_t prudence_routes_next(struct prudence_routes_walk *walk)
{
    const struct route_table *table = route_table_of(walk->table);
    route_key key, within;
    enum where where;
    struct spot spot;

    if (!route_prefix_key(table, &walk->within, &within) ||
        !route_prefix_key(table, &walk->prefix, &key))
        return 0;
    where = route_read_go_to(&spot, table, key, walk->prefix.length);
    if (walk->begun && where == HERE)
        spot.bit *= 2; /* behind that prefix is what is below it */
    walk->begun = true;
    if ((where == BEHIND_HERE && !go_past(&spot)) || !go_to_prefix(&spot) ||
        !is_within(key_at(&spot), length_at(&spot), within, walk->within.length))
        return 0;
    route_key_prefix(table, key_at(&spot), length_at(&spot), &walk->prefix);
    return route_found(table, route_word(spot.path[spot.depth], spot.bit));
}
