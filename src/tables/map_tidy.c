/* SPDX-License-Identifier: MIT */
/*
 * Makes nodes of ordered maps smaller after they lost links. A node whose only link leads to an
 * object gives way to the object; one whose only link leads to a node, to that node with the joined
 * prefix, if short enough; one with few links, to a node of a smaller kind. An untidy map is as
 * correct as a tidy one, so if there is no memory, the map stays untidy.
 */
#include "tables/map_tidy.h"
#include "tables/map_update.h"

/* A node with this number of links or fewer is replaced by one of the kind below, with some room to
 * spare. */
static const uint16_t few[MAP_KINDS] = {0, 3, 12, 28, 64};

bool map_tidy_is_wanted(const struct map_node *node)
{
    unsigned live = load_relaxed(&node->live);

    return live == 1 || live <= few[node->kind];
}

static enum round lift_object(struct map_update *update, const struct map_place *place,
                              struct map_node *node, uintptr_t link)
{
    unsigned byte;

    if (!map_update_lock_both(place, node))
        return ROUND_AGAIN;
    if (node->live != 1 || map_node_only_link(node, &byte) != link)
        map_update_unlock_both(place, node);
    else
        map_update_put_instead(update, place, node, link);
    return ROUND_AGAIN;
}

static enum round map_tidy_join(struct map_update *update, const struct map_place *place,
                                struct map_node *node, struct map_node *child, unsigned byte)
{
    struct map_node *fresh;

    if (!map_update_want(update, child->kind, 1))
        return ROUND_MEMORY;
    if (!map_update_lock_both(place, node))
        return ROUND_AGAIN;
    if (node->live != 1 || map_node_only_link(node, &byte) != (uintptr_t)child) {
        map_update_unlock_both(place, node);
        return ROUND_AGAIN;
    }
    map_lock(child); /* not gone, because the locked link leads here */
    fresh = map_update_take_spare(update, child->kind,
                                  map_prefix_join(node->prefix, (uint8_t)byte, child->prefix));
    map_node_copy_links(fresh, child);
    update->gone[update->gone_count++] = child;
    map_update_mark_gone(child);
    map_update_put_instead(update, place, node, (uintptr_t)fresh);
    return ROUND_AGAIN;
}

static enum round shrink(struct map_update *update, const struct map_place *place,
                         struct map_node *node)
{
    const unsigned kind = node->kind - 1u;
    struct map_node *fresh;

    if (!map_update_want(update, kind, 1))
        return ROUND_MEMORY;
    if (!map_update_lock_both(place, node))
        return ROUND_AGAIN;
    if (!map_tidy_is_wanted(node)) {
        map_update_unlock_both(place, node);
        return ROUND_AGAIN;
    }
    fresh = map_update_take_spare(update, kind, node->prefix);
    map_node_copy_links(fresh, node);
    map_update_put_instead(update, place, node, (uintptr_t)fresh);
    return ROUND_AGAIN;
}

/* Returns ROUND_DONE if there is nothing to do. */
static enum round tidy_node(struct map_update *update, const struct map_place *place,
                            struct map_node *node)
{
    unsigned byte;
    uintptr_t link;

    if (!map_tidy_is_wanted(node))
        return ROUND_DONE;
    if (node->kind != MAP_FOUR)
        return shrink(update, place, node);
    link = map_node_only_link(node, &byte);
    if (load_relaxed(&node->live) != 1 || !link)
        return ROUND_AGAIN;
    if (map_is_object(link))
        return lift_object(update, place, node, link);
    if (map_prefix_length(node->prefix) + 1 + map_prefix_length(map_inner(link)->prefix) >
        MAP_PREFIX_MOST)
        return ROUND_DONE;
    return map_tidy_join(update, place, node, map_inner(link), byte);
}

void map_tidy_now(struct map_update *update, const struct map_place *place, struct map_node *node)
{
    tidy_node(update, place, node);
    if (update->gone_count)
        update->untidy = !map_is_top(update->map, place->node) && map_tidy_is_wanted(place->node);
}

/* Tidies the first node on the way that is not tidy. */
static enum round tidy_way(struct map_update *update)
{
    struct map_place place = map_top(update->map);
    const struct map_key *key = update->key;
    size_t at = 0;

    if (update->gone_count)
        return ROUND_DONE; /* defer the unlinked nodes before the next change */
    for (;;) {
        uintptr_t link = load_acquire(place.slot);
        struct map_node *node = map_inner(link);
        enum round round;

        if (!link || map_is_object(link))
            return ROUND_ABSENT;
        round = tidy_node(update, &place, node);
        if (round != ROUND_DONE)
            return round;
        if (!map_pass_prefix(node->prefix, key, &at))
            return ROUND_ABSENT;
        place = (struct map_place){.node = node, .slot = &node->end};
        if (at < key->length)
            place.slot = map_slot_of_key(node, key, at++);
        if (!place.slot)
            return ROUND_ABSENT;
    }
}

void map_tidy(struct prudence_map *map, const struct map_key *key)
{
    int error;

    do {
        struct map_update update = {.map = map, .key = key};

        error = map_update(&update, tidy_way, 0);
    } while (!error);
}
