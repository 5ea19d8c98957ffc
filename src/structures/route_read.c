/* SPDX-License-Identifier: MIT */
/* Routes by their own prefix, and all of them in order (routes.h). */
#include "structures/routes.h"

uintptr_t prudence_routes_get(const struct prudence_routes *public,
                              const struct prudence_prefix *prefix)
{
    const struct route_table *table = route_table_of(public);
    const struct route_node *node;
    unsigned level, bit;
    route_key key;

    if (!route_prefix_key(table, prefix, &key))
        return 0;
    level = route_level_of(prefix->length);
    bit = route_bit(key, prefix->length);
    node = load_acquire(&table->root);
    for (unsigned at = 0; at < level; at++) {
        if (!route_has(node->children, route_slot(key, at)))
            return 0;
        node = route_child(node, route_slot(key, at));
    }
    return route_has(node->prefixes, bit) ? ROUTE_VALUE(route_word(node, bit)) : 0;
}

/* --------------------------------------------------------------------------------------------- walks */

/*
 * A place in the trie: a bit of a node, or a slot as 64 + slot (route_node.h), and the nodes above. Prefixes in their order
 * are the bits in pre-order: one, all below its half, all below the other half.
 */
struct spot {
    const struct route_node *path[ROUTE_LEVELS];
    unsigned level, bit;
    route_key key; /* those bits that the nodes above take */
};

static void go_down(struct spot *spot, unsigned slot)
{
    spot->key = route_key_with(spot->key, spot->level, slot);
    spot->path[spot->level + 1] = route_child(spot->path[spot->level], slot);
    spot->level++;
    spot->bit = ROUTE_FIRST;
}

/* To this prefix, or to the slot behind which it would be. */
static void go_to(struct spot *spot, const struct route_table *table, route_key key,
                  unsigned length)
{
    const unsigned level = route_level_of(length);

    *spot = (struct spot){.path = {load_acquire(&table->root)}};
    while (spot->level < level &&
           route_has(spot->path[spot->level]->children, route_slot(key, spot->level)))
        go_down(spot, route_slot(key, spot->level));
    spot->bit = spot->level == level ? route_bit(key, length) : 64 + route_slot(key, spot->level);
}

/* Past everything below here. False: there is no more. */
static bool go_past(struct spot *spot)
{
    for (;;) {
        while (spot->bit & 1)
            spot->bit >>= 1;
        if (spot->bit) {
            spot->bit++;
            return true;
        }
        if (spot->level-- == 0)
            return false;
        spot->bit = 64 + route_slot(spot->key, spot->level);
    }
}

/* From here on, to a prefix. False: there is no more. */
static bool go_to_prefix(struct spot *spot)
{
    for (;;) {
        const struct route_node *node = spot->path[spot->level];

        if (spot->bit < 64) {
            if (route_has(node->prefixes, spot->bit))
                return true;
            spot->bit *= 2;
        } else if (route_has(node->children, spot->bit - 64)) {
            go_down(spot, spot->bit - 64);
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

void prudence_routes_walk_begin(struct prudence_routes_walk *walk,
                                const struct prudence_routes *table,
                                const struct prudence_prefix *within)
{
    static const struct prudence_prefix all;

    *walk = (struct prudence_routes_walk){.within = within ? *within : all, .table = table};
    walk->prefix = walk->within;
}

bool prudence_routes_walk_next(struct prudence_routes_walk *walk)
{
    const struct route_table *table = route_table_of(walk->table);
    route_key key, within;
    struct spot spot;

    if (!route_prefix_key(table, &walk->within, &within) ||
        !route_prefix_key(table, &walk->prefix, &key))
        return false;
    go_to(&spot, table, key, walk->prefix.length);
    if (walk->begun && spot.bit < 64)
        spot.bit *= 2; /* behind that prefix is what is below it */
    walk->begun = true;
    if (!go_to_prefix(&spot) ||
        !is_within(key_at(&spot), length_at(&spot), within, walk->within.length))
        return false;
    route_key_prefix(table, key_at(&spot), length_at(&spot), &walk->prefix);
    walk->value = ROUTE_VALUE(route_word(spot.path[spot.level], spot.bit));
    return true;
}
