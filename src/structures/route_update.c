/* SPDX-License-Identifier: MIT */
/* Updates of routes. What each stores, in which order, and why readers are right meanwhile: routes.h. */
#include <errno.h>

#include <prudence/prudence.h>

#include "structures/routes.h"

/* Where a prefix is, or would be. */
struct place {
    route_key key;
    unsigned length, level, bit;
    struct route_node *path[ROUTE_LEVELS]; /* the nodes from the root on, ... */
    unsigned depth;                        /* ... of levels 0 to this, which is `level` at most */
};

/* What an update needs, or has. */
struct room {
    unsigned words; /* of `fresh`; 0: it needs none */
    unsigned count; /* of nodes with one prefix, or one child, in `below` */
    struct route_node *fresh, *below[ROUTE_LEVELS];
};

/* Under the lock. */
static void find(const struct route_table *table, struct place *place)
{
    struct route_node *node = table->root;
    unsigned level = 0;

    place->path[0] = node;
    while (level < place->level && route_has(node->children, route_slot(place->key, level))) {
        node = route_child(node, route_slot(place->key, level));
        place->path[++level] = node;
    }
    place->depth = level;
}

static bool is_there(const struct place *place)
{
    return place->depth == place->level &&
           route_has(place->path[place->depth]->prefixes, place->bit);
}

/* -------------------------------------------------------------------------------------------- memory */

#define SMALLEST 2u /* words: `above`, and a prefix or a child */

static struct route_node *node_make(const struct route_table *table, unsigned words)
{
    return prudence_cache_alloc(table->caches[route_node_size(words)]);
}

static void room_free(const struct route_table *table, const struct room *room)
{
    if (room->fresh)
        prudence_cache_free(table->caches[route_node_size(room->words)], room->fresh);
    for (unsigned i = 0; i < room->count; i++)
        prudence_cache_free(table->caches[route_node_size(SMALLEST)], room->below[i]);
}

static bool room_make(const struct route_table *table, struct room *room)
{
    unsigned count = room->count;

    room->fresh = node_make(table, room->words);
    for (room->count = 0; room->fresh && room->count < count; room->count++) {
        room->below[room->count] = node_make(table, SMALLEST);
        if (!room->below[room->count])
            break;
    }
    if (room->fresh && room->count == count)
        return true;
    room_free(table, room);
    return false;
}

static bool room_fits(const struct room *room, const struct room *needed)
{
    return room->fresh && room->count == needed->count &&
           route_node_size(room->words) == route_node_size(needed->words);
}

/* Under the lock, for the statistics. */
static void count_node(struct route_table *table, const struct route_node *node, uint64_t one)
{
    table->nodes += one;
    table->node_bytes += one * route_node_bytes(route_node_size(route_node_words(node)));
}

/* ------------------------------------------------------------------------------- changing the trie */

/* `fresh` takes the place of the node of this level on the path. Release: a reader that finds it sees what is in it. */
static void put(struct route_table *table, const struct place *place, unsigned level,
                struct route_node *fresh)
{
    count_node(table, fresh, 1);
    count_node(table, place->path[level], (uint64_t)-1);
    if (level == 0) {
        store_release(&table->root, fresh);
    } else {
        struct route_node *above = place->path[level - 1];

        store_release(&above->words[route_child_at(above, route_slot(place->key, level - 1))],
                      (uint64_t)(uintptr_t)fresh);
    }
    if (level == route_index_level(table->public.index))
        route_index_set(table, place->key, route_index_node(fresh));
}

/*
 * The longest prefix that is left of those shorter than `bit`, `owner`, now has this value: stores it in all that inherits
 * it from `node`, which are slots of `bit`. (ROUTE_ABOVE for both: the value is that of a prefix above the node.)
 */
static void hand_down(const struct route_table *table, const struct route_node *node,
                      unsigned level, route_key key, unsigned bit, unsigned owner, uint64_t word)
{
    const uintptr_t index = table->public.index;
    uint64_t slots = route_slots(bit == ROUTE_ABOVE ? ROUTE_FIRST : bit);

    if (level >= route_index_level(index))
        slots &= node->children; /* nothing else inherits */
    for (; slots; slots &= slots - 1) {
        const unsigned slot = (unsigned)__builtin_ctzll(slots);
        const route_key below = route_key_with(key, level, slot);

        if (route_longest(node, slot) != owner)
            continue;
        if (route_has(node->children, slot)) {
            struct route_node *child = route_child(node, slot);

            store_release(&child->words[route_value_at(child, ROUTE_ABOVE)], word);
            hand_down(table, child, level + 1, below, ROUTE_ABOVE, ROUTE_ABOVE, word);
        } else if (level < route_index_level(index)) {
            route_index_fill(index, below, route_bits_before(level + 1), word);
        }
    }
}

/* The nodes from this level on, above that of the prefix, each with one child, and that one. Returns the first. */
static struct route_node *chain_of(struct route_table *table, const struct place *place,
                                   unsigned level, struct room *room, uint64_t above, uint64_t word)
{
    struct route_node *child = NULL;

    for (unsigned at = place->level; at >= level; at--) {
        struct route_node *node = room->below[--room->count];

        route_node_first(node, above);
        if (child)
            route_node_with_child(node, node, route_slot(place->key, at), child);
        else
            route_node_with_prefix(node, node, place->bit, word);
        count_node(table, node, 1);
        if (at == route_index_level(table->public.index))
            route_index_set(table, place->key, route_index_node(node));
        child = node;
    }
    return child;
}

/* ---------------------------------------------------------------------------------------------- add */

static int plan_add(const struct place *place, struct room *needed)
{
    if (is_there(place))
        return EEXIST;
    needed->words = route_node_words(place->path[place->depth]) + 1;
    needed->count = place->level - place->depth;
    return 0;
}

static void commit_add(struct route_table *table, const struct place *place, struct room *room,
                       uint64_t word)
{
    const struct route_node *from = place->path[place->depth];
    const unsigned slot = route_slot(place->key, place->depth);
    struct route_node *fresh = room->fresh;

    if (place->depth == place->level)
        route_node_with_prefix(fresh, from, place->bit, word);
    else
        route_node_with_child(fresh, from, slot,
                              chain_of(table, place, place->depth + 1, room,
                                       route_word(from, route_longest(from, slot)), word));
    put(table, place, place->depth, fresh);
    if (place->depth == place->level)
        hand_down(table, fresh, place->level, place->key, place->bit, place->bit, word);
    else if (place->level < route_index_level(table->public.index))
        route_index_fill(table->public.index, place->key, place->length, word);
    count_add(&table->prefixes, 1);
}

/* ------------------------------------------------------------------------------------------- remove */

/* The lowest node of the path that stays: those below it have nothing but the prefix, or each other. */
static unsigned last_that_stays(const struct place *place)
{
    unsigned level = place->depth;

    while (level > 0 && route_node_words(place->path[level]) == SMALLEST)
        level--;
    return level;
}

static int plan_remove(const struct place *place, struct room *needed)
{
    if (!is_there(place))
        return ENOENT;
    needed->words = route_node_words(place->path[last_that_stays(place)]) - 1;
    needed->count = 0;
    return 0;
}

static void commit_remove(struct route_table *table, const struct place *place,
                          const struct room *room, unsigned stays)
{
    const struct route_node *from = place->path[stays];
    const struct route_node *last = place->path[place->level];
    const unsigned heir = route_longest_below(last, route_first_slot(place->bit), place->bit);
    const uint64_t word = route_word(last, heir);
    const unsigned index_level = route_index_level(table->public.index);

    if (stays == place->level)
        route_node_without_prefix(room->fresh, from, place->bit);
    else
        route_node_without_child(room->fresh, from, route_slot(place->key, stays));
    put(table, place, stays, room->fresh);
    for (unsigned level = stays + 1; level <= place->level; level++)
        count_node(table, place->path[level], (uint64_t)-1);
    if (stays == place->level)
        hand_down(table, room->fresh, place->level, place->key, place->bit, heir, word);
    else if (place->level < index_level)
        route_index_fill(table->public.index, place->key, place->length, word);
    else if (stays < index_level)
        route_index_set(table, place->key, word);
    count_add(&table->prefixes, (uint64_t)-1);
}

/* Without the lock: the nodes of the path from this level on were unlinked. */
static void defer_path(const struct route_table *table, const struct place *place, unsigned level)
{
    for (; level <= place->depth; level++)
        prudence_cache_free_deferred(
            table->caches[route_node_size(route_node_words(place->path[level]))],
            place->path[level]);
}

/* -------------------------------------------------------------------------------------- the functions */

static bool place_make(const struct route_table *table, const struct prudence_prefix *prefix,
                       struct place *place)
{
    if (!route_prefix_key(table, prefix, &place->key))
        return false;
    place->length = prefix->length;
    place->level = route_level_of(prefix->length);
    place->bit = route_bit(place->key, prefix->length);
    return true;
}

/* With 0, the lock is taken, the place is found, and *room is what the update needs. */
static int prepare(struct route_table *table, struct place *place, struct room *room,
                   int (*plan)(const struct place *place, struct room *needed))
{
    *room = (struct room){.words = 0};
    for (;;) {
        struct room needed = {.words = 0};
        int error;

        os_lock_take(&table->lock);
        find(table, place);
        error = plan(place, &needed);
        if (!error && room_fits(room, &needed)) {
            room->words = needed.words;
            return 0;
        }
        os_lock_release(&table->lock);
        room_free(table, room);
        if (error)
            return error;
        *room = needed;
        if (!room_make(table, room))
            return ENOMEM;
    }
}

int prudence_routes_add(struct prudence_routes *public, const struct prudence_prefix *prefix,
                        uintptr_t value)
{
    struct route_table *table = route_table_of(public);
    struct place place;
    struct room room;
    int error;

    if (!value || value > ROUTE_VALUE_MOST || !place_make(table, prefix, &place))
        return EINVAL;
    error = prepare(table, &place, &room, plan_add);
    if (error)
        return error;
    commit_add(table, &place, &room, ROUTE_WORD(value));
    os_lock_release(&table->lock);
    defer_path(table, &place, place.depth);
    route_index_follow_count(table);
    return 0;
}

int prudence_routes_remove(struct prudence_routes *public, const struct prudence_prefix *prefix,
                           uintptr_t *old)
{
    struct route_table *table = route_table_of(public);
    struct place place;
    struct room room;
    unsigned stays;
    int error;

    if (!place_make(table, prefix, &place))
        return EINVAL;
    error = prepare(table, &place, &room, plan_remove);
    if (error)
        return error;
    stays = last_that_stays(&place);
    if (old)
        *old = ROUTE_VALUE(route_word(place.path[place.level], place.bit));
    commit_remove(table, &place, &room, stays);
    os_lock_release(&table->lock);
    defer_path(table, &place, stays);
    return 0;
}

int prudence_routes_replace(struct prudence_routes *public, const struct prudence_prefix *prefix,
                            uintptr_t value, uintptr_t *old)
{
    struct route_table *table = route_table_of(public);
    struct place place;
    struct route_node *node;
    bool there;

    if (!value || value > ROUTE_VALUE_MOST || !place_make(table, prefix, &place))
        return EINVAL;
    os_lock_take(&table->lock);
    find(table, &place);
    there = is_there(&place);
    if (there) {
        node = place.path[place.level];
        if (old)
            *old = ROUTE_VALUE(route_word(node, place.bit));
        store_release(&node->words[route_value_at(node, place.bit)], ROUTE_WORD(value));
        hand_down(table, node, place.level, place.key, place.bit, place.bit, ROUTE_WORD(value));
    }
    os_lock_release(&table->lock);
    return there ? 0 : ENOENT;
}
