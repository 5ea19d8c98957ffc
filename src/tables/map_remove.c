/* SPDX-License-Identifier: MIT */
/*
 * Removes objects from ordered maps, or replaces them in their places.
 *
 * A link is taken out of its node if the node has another link. Otherwise the node goes too, and so
 * do the nodes above that have no other link. These nodes are the `line`, which hangs on the lowest
 * node with several links (or the top) and leads down to the object. One store there unlinks the
 * line, with all nodes locked. The nodes stay as they are, so a reader in one of them finds the
 * object, as it would have a moment before.
 */
#include "tables/map_remove.h"
#include "tables/map_tidy.h"
#include "tables/map_update.h"
#include "tables/own_successor.h"

#include <errno.h>

/* The end of the way of a key. */
struct way {
    struct map_place place;  /* place of the link to the object */
    uintptr_t link;          /* link to the object; 0 if the key is not there */
    struct map_place anchor; /* lowest place in a node with several links, or the top */
    uintptr_t anchor_link;
    struct map_place above; /* place of the link to the anchor's node */
};

/* The caller says whether the key is a number, so the compiler makes a loop for each kind. */
static inline __attribute__((always_inline)) void
find_way(const struct map_update *update, const struct map_key *key, struct way *way)
{
    struct map_place place = map_top(update->map), before = place, anchor = place, above = place;
    const struct map_node *line = NULL; /* first node after the anchor, if any */
    uintptr_t link = load_acquire(place.slot);
    size_t at = 0;

    while (link && !map_is_object(link)) {
        struct map_node *node = map_inner(link);
        uintptr_t *slot = &node->end;

        link = 0;
        if (!map_pass_prefix(node->prefix, key, &at))
            break;
        if (at < key->length)
            slot = map_slot_of_key(node, key, at++);
        if (!slot)
            break;
        link = load_acquire(slot);
        if (likely(load_relaxed(&node->live) > 1)) {
            line = NULL;
        } else if (!line) {
            line = node;
            anchor = place;
            above = before;
        }
        before = place;
        place = (struct map_place){.node = node, .slot = slot};
    }
    *way = (struct way){.place = place,
                        .link = link,
                        .anchor = line ? anchor : place,
                        .anchor_link = line ? (uintptr_t)line : link,
                        .above = line ? above : before};
}

static void map_remove_find(const struct map_update *update, struct way *way)
{
    struct map_key key = *update->key;

    if (key.bytes) {
        find_way(update, &key, way);
    } else {
        key = map_key_of_number(key.number);
        find_way(update, &key, way);
    }
}

static bool map_remove_has_key(const struct map_update *update, uintptr_t link)
{
    struct map_key there;

    if (!link)
        return false;
    there = map_key_of(map_object(link), update->map->bytes);
    return map_key_is(&there, update->key) && (!update->object || update->object == link);
}

/* Under the anchor's lock: locks the nodes from `line` down to the link, each of which must have
 * one link only. If one has more, or the line ends elsewhere, returns false with none locked. */
static bool lock_line(struct map_node *line, uintptr_t link)
{
    struct map_node *node = line, *locked = NULL;
    uintptr_t next = 0;
    unsigned byte;

    for (;;) {
        map_lock(node);
        next = node->live == 1 ? map_node_only_link(node, &byte) : 0;
        locked = node;
        if (!next || map_is_object(next))
            break;
        node = map_inner(next);
    }
    if (next == link)
        return true;
    for (node = line;; node = map_inner(next)) {
        next = node == locked ? 0 : map_node_only_link(node, &byte);
        map_unlock(node);
        if (!next)
            return false;
    }
}

static void unlink_line(struct map_update *update, struct map_node *line)
{
    struct map_node *node = line;

    update->gone_line = line;
    while (node) {
        unsigned byte;
        uintptr_t next = map_node_only_link(node, &byte);

        map_update_mark_gone(node);
        node = map_is_object(next) ? NULL : map_inner(next);
    }
}

static enum round take_out(struct map_update *update, const struct way *way)
{
    struct map_node *node = way->anchor.node;
    const bool top = map_is_top(update->map, node);

    if (!map_update_lock_place(&way->anchor, way->anchor_link))
        return ROUND_AGAIN;
    if ((!top && node->live < 2) ||
        (way->anchor_link != way->link && !lock_line(map_inner(way->anchor_link), way->link))) {
        map_unlock(node);
        return ROUND_AGAIN;
    }
    /* Release: a thread that finds the key gone also sees earlier stores of the removing thread. */
    store_release(way->anchor.slot, 0);
    store_relaxed(&node->live, narrow(uint16_t, node->live - 1));
    if (way->anchor_link != way->link)
        unlink_line(update, map_inner(way->anchor_link));
    update->untidy = !top && map_tidy_is_wanted(node);
    map_unlock(node);
    if (update->untidy)
        map_tidy_now(update, &way->above, node);
    return ROUND_DONE;
}

static enum round remove_round(struct map_update *update)
{
    struct way way;

    map_remove_find(update, &way);
    if (!map_remove_has_key(update, way.link))
        return ROUND_ABSENT;
    update->there = way.link;
    return take_out(update, &way);
}

static enum round replace_round(struct map_update *update)
{
    struct way way;

    map_remove_find(update, &way);
    if (!map_remove_has_key(update, way.link))
        return ROUND_ABSENT;
    if (!map_update_lock_place(&way.place, way.link))
        return ROUND_AGAIN;
    store_release(way.place.slot, update->fresh);
    map_unlock(way.place.node);
    return ROUND_DONE;
}

struct prudence_map_node *map_remove(struct prudence_map *map, const struct map_key *key,
                                     uintptr_t object)
{
    struct map_update update = {.map = map, .key = key, .object = object};

    if (map_update(&update, remove_round, -1))
        return NULL;
    if (update.untidy)
        map_tidy(map, key);
    return map_object(update.there);
}

static int map_erase(struct prudence_map *map, const struct map_key *key,
                     struct prudence_map_node **old)
{
    const bool fits = map && map_key_fits(map, key);
    struct prudence_map_node *node = fits ? map_remove(map, key, 0) : NULL;

    if (old)
        *old = node;
    if (!fits)
        return EINVAL;
    return node ? 0 : ENOENT;
}

int prudence_map_erase(struct prudence_map *map, uint64_t number, struct prudence_map_node **old)
{
    const struct map_key key = map_key_of_number(number);

    return map_erase(map, &key, old);
}

int prudence_map_erase_bytes(struct prudence_map *map, const void *bytes, size_t length,
                             struct prudence_map_node **old)
{
    const struct map_key key = map_key_of_bytes(bytes, length);

    return map_erase(map, &key, old);
}

int prudence_map_remove(struct prudence_map *map, struct prudence_map_node *node)
{
    struct map_key key;

    if (!map || !node)
        return EINVAL;
    key = map_key_of(node, map->bytes);
    return map_remove(map, &key, map_link_to(node)) ? 0 : ENOENT;
}

int map_replace(struct prudence_map *map, const struct map_key *key, struct prudence_map_node *old,
                struct prudence_map_node *fresh)
{
    struct map_update update = {
        .map = map, .key = key, .object = map_link_to(old), .fresh = map_link_to(fresh)};

    return map_update(&update, replace_round, 0);
}

int prudence_map_replace(struct prudence_map *map, struct prudence_map_node *old,
                         struct prudence_map_node *fresh)
{
    struct map_key key, fresh_key;

    if (!map || !old || !fresh)
        return EINVAL;
    if (unlikely(old == fresh))
        return refuse_own_successor("prudence_map_replace");
    key = map_key_of(old, map->bytes);
    fresh_key = map_key_of(fresh, map->bytes);
    return map_key_is(&key, &fresh_key) ? map_replace(map, &key, old, fresh) : EINVAL;
}
