/* SPDX-License-Identifier: MIT */
/*
 * Adds and replaces objects in ordered maps. The end of the key's way decides how:
 *  - An empty link is filled.
 *  - A node without a slot for the byte gets one more, or another node takes its place.
 *  - An object with another key goes into a new node, together with the added object.
 *  - A prefix that the key does not have is cut. One node gets the first part, another the rest.
 */
#include "tables/map_add.h"
#include "tables/map_update.h"
#include "tables/own_successor.h"

#include <errno.h>

static void append_object(struct map_node *node, const struct map_key *key, size_t at,
                          uintptr_t link)
{
    if (at < key->length) {
        map_node_append(node, map_key_byte(key, at), link);
    } else {
        node->end = link;
        map_count_link(node);
    }
}

/* Fills an empty slot, or `end`. */
static enum round map_add_fill(struct map_update *update, const struct map_place *place)
{
    struct map_node *node = place->node;

    if (!map_update_lock_place(place, 0))
        return ROUND_AGAIN;
    store_release(place->slot, update->object);
    map_count_link(node);
    map_unlock(node);
    return ROUND_DONE;
}

/* Makes nodes for all bytes that the keys share from `at` on, and one that distinguishes them and
 * links both objects. */
static struct map_node *make_fork(struct map_update *update, const struct map_key *other,
                                  uintptr_t other_link, size_t at, size_t common)
{
    struct map_node *first = NULL, *above = NULL, *node;

    do {
        unsigned length = (unsigned)min_size(common, MAP_PREFIX_MOST);

        node = map_update_take_spare(update, MAP_FOUR,
                                     map_prefix(map_key_window(update->key, at), length));
        at += length;
        common -= length;
        if (above)
            map_node_append(above, map_key_byte(update->key, at - length - 1), (uintptr_t)node);
        else
            first = node;
        above = node;
        if (!common)
            break;
        at++;
        common--;
    } while (true);
    append_object(node, update->key, at, update->object);
    append_object(node, other, at, other_link);
    return first;
}

/* Handles a way that leads to an object. */
static enum round meet(struct map_update *update, const struct map_place *place, uintptr_t link,
                       size_t at)
{
    const struct map_key other = map_key_of(map_object(link), update->map->bytes);
    size_t common;

    if (map_key_is(&other, update->key)) {
        update->there = link;
        if (!update->replacing || link == update->object)
            return ROUND_EXISTS;
        if (!map_update_lock_place(place, link))
            return ROUND_AGAIN;
        store_release(place->slot, update->object);
        map_unlock(place->node);
        return ROUND_DONE;
    }
    common = map_key_common(&other, update->key, at);
    if (!map_update_want(update, MAP_FOUR, common / (MAP_PREFIX_MOST + 1) + 1))
        return ROUND_MEMORY;
    if (!map_update_lock_place(place, link))
        return ROUND_AGAIN;
    store_release(place->slot, (uintptr_t)make_fork(update, &other, link, at, common));
    map_unlock(place->node);
    return ROUND_DONE;
}

/* Cuts the node's prefix, of which the key has only the first `common` bytes. */
static enum round cut(struct map_update *update, const struct map_place *place,
                      struct map_node *node, size_t at, unsigned common)
{
    const unsigned kind = node->kind;
    struct map_node *above, *below;
    bool enough = map_update_want(update, MAP_FOUR, 1 + (kind == MAP_FOUR));

    if (!(kind == MAP_FOUR || map_update_want(update, kind, 1)) || !enough)
        return ROUND_MEMORY;
    if (!map_update_lock_both(place, node))
        return ROUND_AGAIN;
    below = map_update_take_spare(update, kind, map_prefix_behind(node->prefix, common + 1));
    map_node_copy_links(below, node);
    above = map_update_take_spare(update, MAP_FOUR, map_prefix(node->prefix, common));
    map_node_append(above, map_prefix_byte(node->prefix, common), (uintptr_t)below);
    append_object(above, update->key, at + common, update->object);
    map_update_put_instead(update, place, node, (uintptr_t)above);
    return ROUND_DONE;
}

/* Appends a slot for the byte. The round found no slot, but room for one. */
static enum round append(struct map_update *update, struct map_node *node, uint8_t byte)
{
    if (!map_lock(node))
        return ROUND_AGAIN;
    if (map_slot(node, byte) || !map_has_room(node)) {
        map_unlock(node);
        return ROUND_AGAIN;
    }
    map_node_append(node, byte, update->object);
    map_unlock(node);
    return ROUND_DONE;
}

/* Replaces a full node by a larger one or, if many slots are empty, by one of the same kind. */
static enum round map_add_grow(struct map_update *update, const struct map_place *place,
                               struct map_node *node, uint8_t byte)
{
    const unsigned capacity = map_capacity[node->kind], live = load_relaxed(&node->live);
    const unsigned kind = node->kind + (live > capacity - capacity / 4 ? 1u : 0u);
    struct map_node *fresh;

    if (!map_update_want(update, kind, 1))
        return ROUND_MEMORY;
    if (!map_update_lock_both(place, node))
        return ROUND_AGAIN;
    if (map_slot(node, byte) || node->live >= map_capacity[kind]) {
        map_update_unlock_both(place, node);
        return ROUND_AGAIN;
    }
    fresh = map_update_take_spare(update, kind, node->prefix);
    map_node_copy_links(fresh, node);
    map_node_append(fresh, byte, update->object);
    map_update_put_instead(update, place, node, (uintptr_t)fresh);
    return ROUND_DONE;
}

/* The caller says whether the key is a number, so the compiler makes a loop for each kind. */
static inline __attribute__((always_inline)) enum round map_add_on_way(struct map_update *update,
                                                                       const struct map_key *key)
{
    struct map_place place = map_top(update->map);
    size_t at = 0;

    update->there = 0;
    for (;;) {
        uintptr_t link = load_acquire(place.slot);
        struct map_node *node = map_inner(link);

        if (!link)
            return map_add_fill(update, &place);
        if (map_is_object(link))
            return meet(update, &place, link, at);
        if (!map_pass_prefix(node->prefix, key, &at))
            return cut(update, &place, node, at, map_prefix_common(node->prefix, key, at));
        if (at == key->length) {
            place = (struct map_place){.node = node, .slot = &node->end};
        } else {
            uintptr_t *slot = map_slot_of_key(node, key, at);
            uint8_t byte = map_key_byte(key, at++);

            if (!slot)
                return load_relaxed(&node->used) < map_capacity[node->kind]
                           ? append(update, node, byte)
                           : map_add_grow(update, &place, node, byte);
            place = (struct map_place){.node = node, .slot = slot};
        }
    }
}

static enum round map_add_here(struct map_update *update)
{
    struct map_key key = *update->key;

    if (key.bytes)
        return map_add_on_way(update, &key);
    key = map_key_of_number(key.number);
    return map_add_on_way(update, &key);
}

int map_add(struct prudence_map *map, struct prudence_map_node *node, bool replacing,
            struct prudence_map_node **there)
{
    const struct map_key key = map_key_of(node, map->bytes);
    struct map_update update = {
        .map = map, .key = &key, .object = map_link_to(node), .replacing = replacing};
    int error;

    /* Of strings that begin alike, nearly half need such a node. Giving a node back unused costs
     * less than following a key a second time. */
    if (map->bytes && !replacing)
        map_update_provide(&update, MAP_FOUR);
    error = map_update(&update, map_add_here, 1);

    *there = update.there ? map_object(update.there) : NULL;
    return error;
}

static bool is_usable(const struct prudence_map *map, const struct prudence_map_node *node)
{
    return map && node &&
           (!map->bytes || node->key || !((const struct prudence_map_bytes *)node)->length);
}

static int add_or_replace(struct prudence_map *map, struct prudence_map_node *node, bool replacing,
                          struct prudence_map_node **found)
{
    struct prudence_map_node *there = NULL;
    int error = is_usable(map, node) ? map_add(map, node, replacing, &there) : EINVAL;

    if (unlikely(replacing && error == EEXIST)) {
        error = refuse_own_successor("prudence_map_put");
        there = NULL;
    }
    if (found)
        *found = there;
    return error;
}

int prudence_map_add(struct prudence_map *map, struct prudence_map_node *node,
                     struct prudence_map_node **there)
{
    return add_or_replace(map, node, false, there);
}

int prudence_map_put(struct prudence_map *map, struct prudence_map_node *node,
                     struct prudence_map_node **old)
{
    return add_or_replace(map, node, true, old);
}
