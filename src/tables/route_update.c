/* SPDX-License-Identifier: MIT */
/* Updates of routes. routes.h says which words an update stores to, in which order, and why readers
 * are right in between. */
#include <errno.h>

#include <prudence/prudence.h>

#include "tables/route_area.h"
#include "tables/route_index.h"
#include "tables/route_room.h"
#include "tables/route_shortcut.h"
#include "tables/routes.h"

/* The place of a prefix, or the one that it would have. */
struct place {
    route_key key;
    unsigned length, level, bit;
    struct route_node *path[ROUTE_LEVELS]; /* nodes on the way from the root on, ... */
    unsigned levels[ROUTE_LEVELS];         /* ... their levels, at most `level`, ... */
    unsigned depth;                        /* ... and the number of the last */
    uint64_t edge;  /* from the last node, to one that is not on the way; 0: none */
    uint64_t value; /* for an addition: that of the prefix, if it is there */

    /*
     * For a removal: the nodes after number `stays` go. That node loses a word, so another node
     * takes its place. But if `left` is not 0, that node goes as well, and this edge, to all that
     * remains below, takes its place.
     */
    unsigned stays;
    uint64_t left;
};

/* Finds the place, under the lock. */
static void route_update_find(const struct route_table *table, struct place *place)
{
    const route_key key = place->key;
    const unsigned last = place->level;
    struct route_node *node = table->root;
    unsigned level = 0, depth = 0, slot = route_slot(key, 0);
    route_key rest = key << 1; /* bits after the slot */

    place->path[0] = node;
    place->levels[0] = 0;
    place->edge = 0;
    while (level < last && route_has(node->children, slot)) {
        const uint64_t edge = route_child_edge(node, slot);

        level++;
        node = (struct route_node *)(uintptr_t)edge;
        if (unlikely(route_edge_skips(edge))) {
            level += route_edge_levels(edge);
            if (!route_is_on_the_way(edge, level, key, last)) {
                place->edge = edge;
                break;
            }
            rest <<= 6 * route_edge_levels(edge);
            node = route_edge_node(edge);
        }
        place->path[++depth] = node;
        place->levels[depth] = level;
        slot = (unsigned)(rest >> (ROUTE_KEY_BITS - 6));
        rest <<= 6;
    }
    place->depth = depth;
}

/* Returns whether the prefix's own node is there. */
static bool is_at_level(const struct place *place)
{
    return place->levels[place->depth] == place->level;
}

static bool is_there(const struct place *place)
{
    return is_at_level(place) && route_has(place->path[place->depth]->prefixes, place->bit);
}

/* Counts a node for the statistics, under the lock. */
static void count_node(struct route_table *table, const struct route_node *node, uint64_t one)
{
    table->nodes += one;
    table->node_bytes += one * route_node_memory(table, node);
}

/* ---------------------------------------------------------------------------- changing the trie */

/* Stores the edge to `node`, of this level, in the node with this number on the path. Release: a
 * reader that finds `node` sees the content. */
static void hang(const struct route_table *table, const struct place *place, unsigned number,
                 const struct route_node *node, unsigned level)
{
    struct route_node *above = place->path[number];
    const unsigned from = place->levels[number];
    uint64_t *edge = &above->words[route_child_at(above, route_slot(place->key, from))];

    route_shortcut_replace(table, from, *edge, node, level);
    store_release(edge, route_edge(node, level - from - 1));
}

/* Puts `fresh` in the place of the node with this number on the path; in the index first. */
static void route_update_put(struct route_table *table, const struct place *place, unsigned number,
                             struct route_node *fresh)
{
    const unsigned level = place->levels[number];

    count_node(table, fresh, 1);
    count_node(table, place->path[number], (uint64_t)-1);
    if (number && table->node_front)
        *route_path(fresh) = *route_path(place->path[number]);
    if (level == route_index_level(table->public.index, place->key))
        route_index_set(table, place->key, route_index_node(fresh));
    if (number)
        hang(table, place, number - 1, fresh, level);
    else
        store_release(&table->root, fresh);
}

/*
 * Stores the value of `owner` in all words below `node` that inherit it in the slots of `bit`.
 * `owner` is `bit`, or the longest shorter prefix if `bit` was removed. (ROUTE_ABOVE for both means
 * a prefix above the node.) A child comes after all that is below it, because the index has its
 * words there.
 */
static void hand_down(const struct route_table *table, const struct route_node *node,
                      unsigned level, route_key key, unsigned bit, unsigned owner, uint64_t word)
{
    const uintptr_t index = table->public.index;
    const unsigned index_level = route_index_level(index, key);
    uint64_t slots = route_slots(bit == ROUTE_ABOVE ? ROUTE_FIRST : bit);

    if (level >= index_level)
        slots &= node->children; /* only children inherit */
    for (; slots; slots &= slots - 1) {
        const unsigned slot = (unsigned)__builtin_ctzll(slots);
        const route_key below = route_key_with(key, level, slot);

        if (route_longest(node, slot) != owner)
            continue;
        if (route_has(node->children, slot)) {
            const uint64_t edge = route_child_edge(node, slot);
            struct route_node *child = route_edge_node(edge);

            hand_down(table, child, level + 1 + route_edge_levels(edge), below, ROUTE_ABOVE,
                      ROUTE_ABOVE, word);
            store_release(&child->words[route_value_at(child, ROUTE_ABOVE)], word);
        } else if (level < index_level) {
            route_index_fill(index, below, route_bits_before(level + 1), word);
        }
    }
}

/* Begins a node that no reader sees, and that the key leads to. */
static void begin_node(struct route_table *table, struct route_node *node, route_key key,
                       unsigned level, uint64_t above)
{
    route_node_first(node, above);
    if (table->node_front)
        *route_path(node) = route_path_of(key, level);
}

/* Makes new nodes below a node of this level, down to one with the prefix. Returns the edge to the
 * first. */
static uint64_t route_update_make_chain(struct route_table *table, const struct place *place,
                                        unsigned level, struct route_room *room, uint64_t above,
                                        uint64_t word)
{
    const unsigned at = route_level_below(table, level, place->level);
    struct route_node *node = room->below[room->used++];

    begin_node(table, node, place->key, at, above);
    if (at == place->level)
        route_node_with_prefix(node, node, place->bit, word);
    else
        route_node_with_child(node, node, route_slot(place->key, at),
                              route_update_make_chain(table, place, at, room, above, word));
    count_node(table, node, 1);
    route_shortcut_add(table, level, node, at);
    if (at == route_index_level(table->public.index, place->key))
        route_index_set(table, place->key, route_index_node(node));
    return route_edge(node, at - level - 1);
}

static unsigned chain_length(const struct route_table *table, const struct place *place,
                             unsigned level)
{
    unsigned count = 0;

    for (; level < place->level; count++)
        level = route_level_below(table, level, place->level);
    return count;
}

/* ------------------------------------------------------------------------------------------ add */

#define FORK                                                                                       \
    3u /* words of a node in the middle of an edge: `above`, the old child, a prefix or child */

static unsigned level_below_edge(const struct place *place)
{
    return place->levels[place->depth] + 1 + route_edge_levels(place->edge);
}

/* Returns the level of the node that cuts the edge: the prefix's own, or the one at which the way
 * leaves the edge. */
static unsigned level_of_cut(const struct place *place)
{
    const unsigned end = level_below_edge(place);
    const uint64_t differ =
        *route_path(route_edge_node(place->edge)) ^ route_path_of(place->key, end);
    unsigned leaves;

    if (!differ)
        return place->level;
    leaves = end - 1 - (63u ^ (unsigned)__builtin_clzll(differ)) / 6;
    return leaves < place->level ? leaves : place->level;
}

static int plan_add(const struct route_table *table, struct place *place, struct route_need *needed)
{
    if (is_there(place)) {
        place->value = route_word(place->path[place->depth], place->bit);
        return EEXIST;
    }
    if (place->edge) {
        needed->words = FORK;
        needed->end_words = route_node_words(route_edge_node(place->edge));
        needed->count = chain_length(table, place, level_of_cut(place));
    } else {
        needed->words = route_node_words(place->path[place->depth]) + 1;
        needed->end_words = 0;
        needed->count = chain_length(table, place, place->levels[place->depth]);
    }
    return 0;
}

/* Copies the end of the edge, for a new node of this level in the middle. */
static struct route_node *copy_end(struct route_table *table, const struct place *place,
                                   struct route_room *room, unsigned level)
{
    const struct route_node *end = route_edge_node(place->edge);
    const unsigned end_level = level_below_edge(place);

    route_node_copy(room->end, end);
    *route_path(room->end) = *route_path(end);
    count_node(table, room->end, 1);
    count_node(table, end, (uint64_t)-1);
    route_shortcut_replace(table, level, route_edge(end, end_level - level - 1), room->end,
                           end_level);
    return room->end;
}

/*
 * Puts a node in the middle of the edge, and a copy at the end. The old end must not change,
 * because a reader that has loaded the edge, and whose address leaves it, may load `above` of the
 * old end later. In the copy, `above` becomes the value of the new prefix, which need not match
 * that address. For all addresses that leave the edge, the store to the edge's place is the one
 * step. Addresses that follow the edge get the prefix from `above` of the copy.
 */
static void cut_edge(struct route_table *table, const struct place *place, struct route_room *room,
                     uint64_t word)
{
    const unsigned end_level = level_below_edge(place), level = level_of_cut(place);
    const struct route_node *end = copy_end(table, place, room, level);
    const unsigned end_slot = (unsigned)(*route_path(end) >> 6 * (end_level - 1 - level)) & 63;
    const uint64_t above = route_word(end, ROUTE_ABOVE);
    struct route_node *fresh = room->fresh;

    begin_node(table, fresh, place->key, level, above);
    route_node_with_child(fresh, fresh, end_slot, route_edge(end, end_level - level - 1));
    if (level == place->level)
        route_node_with_prefix(fresh, fresh, place->bit, word);
    else
        route_node_with_child(fresh, fresh, route_slot(place->key, level),
                              route_update_make_chain(table, place, level, room, above, word));
    count_node(table, fresh, 1);
    hang(table, place, place->depth, fresh, level);
    if (level == place->level)
        hand_down(table, fresh, level, place->key, place->bit, place->bit, word);
}

/* Gives the last node on the way one more prefix or child. */
static void grow_node(struct route_table *table, const struct place *place, struct route_room *room,
                      uint64_t word)
{
    const struct route_node *from = place->path[place->depth];
    const unsigned level = place->levels[place->depth], slot = route_slot(place->key, level);
    struct route_node *fresh = room->fresh;

    if (level == place->level)
        route_node_with_prefix(fresh, from, place->bit, word);
    else
        route_node_with_child(fresh, from, slot,
                              route_update_make_chain(table, place, level, room,
                                                      route_word(from, route_longest(from, slot)),
                                                      word));
    if (level == place->level)
        hand_down(table, fresh, level, place->key, place->bit, place->bit, word);
    else if (place->level < route_index_level(table->public.index, place->key))
        route_index_fill(table->public.index, place->key, place->length, word);
    route_update_put(table, place, place->depth, fresh);
}

/* --------------------------------------------------------------------------------------- remove */

/* Returns how many words the node keeps without this prefix or this slot (the other is 0). */
static unsigned words_left(const struct route_node *node, uint64_t prefix, uint64_t slot)
{
    return (unsigned)(prudence_routes_ones_(node->prefixes & ~prefix) +
                      prudence_routes_ones_(node->children & ~slot));
}

static int plan_remove(const struct route_table *table, struct place *place,
                       struct route_need *needed)
{
    uint64_t prefix = ROUTE_BIT(place->bit), slot = 0;
    const struct route_node *node;
    unsigned number, words;

    if (!is_there(place))
        return ENOENT;
    for (number = place->depth;; number--) {
        node = place->path[number];
        words = words_left(node, prefix, slot);
        if (words >= ROUTE_SMALLEST || number == 0)
            break;
        prefix = 0;
        slot = ROUTE_BIT(route_slot(place->key, place->levels[number - 1]));
    }
    place->stays = number;
    place->left = 0;
    if (words == ROUTE_SMALLEST && node->children & ~slot &&
        !route_is_always_there(table, place->levels[number]))
        place->left = route_child_edge(node, (unsigned)__builtin_ctzll(node->children & ~slot));
    *needed = (struct route_need){.words = place->left ? 0 : words};
    return 0;
}

/* Replaces node number `stays` by one with a word less. */
static void shrink_node(struct route_table *table, const struct place *place,
                        struct route_node *fresh, unsigned heir, uint64_t word)
{
    const unsigned stays = place->stays;
    const struct route_node *from = place->path[stays];
    const unsigned level = place->levels[stays];
    const unsigned index_level = route_index_level(table->public.index, place->key);

    if (stays == place->depth)
        route_node_without_prefix(fresh, from, place->bit);
    else
        route_node_without_child(fresh, from, route_slot(place->key, level));
    if (stays == place->depth)
        hand_down(table, fresh, level, place->key, place->bit, heir, word);
    else if (place->level < index_level)
        route_index_fill(table->public.index, place->key, place->length, word);
    else if (level < index_level)
        route_index_set(table, place->key, word);
    route_update_put(table, place, stays, fresh);
}

/* Attaches the remaining child to the node above. This comes after hand_down, because addresses
 * that leave the new edge get the child's `above`. */
static void join_edges(struct route_table *table, const struct place *place, uint64_t word)
{
    struct route_node *node = place->path[place->stays];
    const unsigned level = place->levels[place->stays];

    if (place->stays == place->depth)
        hand_down(table, node, level, place->key, place->bit, place->bit, word);
    count_node(table, node, (uint64_t)-1);
    hang(table, place, place->stays - 1, route_edge_node(place->left),
         level + 1 + route_edge_levels(place->left));
}

static void commit_remove(struct route_table *table, const struct place *place,
                          const struct route_room *room)
{
    const struct route_node *last = place->path[place->depth];
    const unsigned heir = route_longest_below(last, route_first_slot(place->bit), place->bit);
    const uint64_t word = route_word(last, heir);

    for (unsigned number = place->stays + 1; number <= place->depth; number++) {
        count_node(table, place->path[number], (uint64_t)-1);
        route_shortcut_remove(table, place->levels[number - 1], place->path[number],
                              place->levels[number]);
    }
    if (place->left)
        join_edges(table, place, word);
    else
        shrink_node(table, place, room->fresh, heir, word);
    count_add(&table->prefixes, (uint64_t)-1);
}

/* Without the lock: defers the unlinked nodes of the path, from this number on. */
static void defer_path(const struct route_table *table, const struct place *place, unsigned number)
{
    for (; number <= place->depth; number++)
        route_node_defer(table, place->path[number]);
}

/* -------------------------------------------------------------------------------- the functions */

static bool place_make(const struct route_table *table, const struct prudence_routes_prefix *prefix,
                       struct place *place)
{
    if (!route_prefix_key(table, prefix, &place->key))
        return false;
    place->length = prefix->length;
    place->level = route_level_of(prefix->length);
    place->bit = route_bit(place->key, prefix->length);
    return true;
}

/* Finds the place and memory for an update. With 0, the lock is held and *room has all that the
 * update needs. */
static int prepare(struct route_table *table, struct place *place, struct route_room *room,
                   int (*plan)(const struct route_table *table, struct place *place,
                               struct route_need *needed))
{
    bool is_made = false, is_ready;
    struct route_need needed;
    int error;

    for (;;) {
        os_lock_take(&table->lock);
        route_update_find(table, place);
        error = plan(table, place, &needed);
        is_ready = !error && (is_made ? route_room_fits(table, room, &needed)
                                      : route_room_take(table, room, &needed));
        if (is_ready) {
            room->need = needed;
            return 0;
        }
        os_lock_release(&table->lock);
        if (is_made)
            route_room_free(table, room);
        if (error)
            return error;
        if (is_made ? !route_room_make(table, room, &needed) : !route_room_complete(table, room))
            return ENOMEM;
        is_made = true;
    }
}

/* Stores what an update found, if the caller wants to know. */
static void route_tell(uintptr_t *found, uintptr_t value)
{
    if (found)
        *found = value;
}

int prudence_routes_add(struct prudence_routes *public, const struct prudence_routes_prefix *prefix,
                        uintptr_t value, uintptr_t *there)
{
    struct route_table *table = route_table_of(public);
    struct place place;
    struct route_room room;
    bool asks_for_area;
    int error;

    route_tell(there, 0);
    if (!value || value > ROUTE_VALUE_MOST || !place_make(table, prefix, &place))
        return EINVAL;
    error = prepare(table, &place, &room, plan_add);
    if (error == EEXIST)
        route_tell(there, place.value);
    if (error)
        return error;
    route_tell_added(table, value);
    if (place.edge)
        cut_edge(table, &place, &room, value);
    else
        grow_node(table, &place, &room, value);
    count_add(&table->prefixes, 1);
    asks_for_area =
        route_area_is_wanted(table, place.key, place.levels[place.depth], room.need.words);
    os_lock_release(&table->lock);
    if (place.edge)
        route_node_defer(table, route_edge_node(place.edge));
    else
        defer_path(table, &place, place.depth);
    route_room_restock(table, &room);
    route_index_follow_count(table);
    if (unlikely(asks_for_area))
        route_area_add(table, place.key);
    route_shortcuts_follow_count(table);
    return 0;
}

int prudence_routes_erase(struct prudence_routes *public,
                          const struct prudence_routes_prefix *prefix, uintptr_t *old)
{
    struct route_table *table = route_table_of(public);
    struct place place;
    struct route_room room;
    int error;

    route_tell(old, 0);
    if (!place_make(table, prefix, &place))
        return EINVAL;
    error = prepare(table, &place, &room, plan_remove);
    if (error)
        return error;
    route_tell(old, route_word(place.path[place.depth], place.bit));
    commit_remove(table, &place, &room);
    os_lock_release(&table->lock);
    defer_path(table, &place, place.stays);
    route_room_restock(table, &room);
    return 0;
}

int prudence_routes_replace(struct prudence_routes *public,
                            const struct prudence_routes_prefix *prefix, uintptr_t value,
                            uintptr_t *old)
{
    struct route_table *table = route_table_of(public);
    struct place place;
    struct route_node *node;
    bool there;

    route_tell(old, 0);
    if (!value || value > ROUTE_VALUE_MOST || !place_make(table, prefix, &place))
        return EINVAL;
    os_lock_take(&table->lock);
    route_update_find(table, &place);
    there = is_there(&place);
    if (there) {
        node = place.path[place.depth];
        route_tell(old, route_word(node, place.bit));
        route_tell_added(table, value);
        hand_down(table, node, place.level, place.key, place.bit, place.bit, value);
        store_release(&node->words[route_value_at(node, place.bit)], value);
    }
    os_lock_release(&table->lock);
    return there ? 0 : ENOENT;
}
