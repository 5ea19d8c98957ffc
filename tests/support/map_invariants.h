/* SPDX-License-Identifier: MIT */
/* Every invariant of tables/map.h that holds while no thread is inside an update. */
#ifndef TESTS_SUPPORT_MAP_INVARIANTS_H
#define TESTS_SUPPORT_MAP_INVARIANTS_H

#include "support/slab_test.h"

#include <prudence/map.h>

#include "tables/map.h"

#define MAP_DEEPEST 64 /* bytes of the longest key that shares them with another one */

static inline struct prudence_map_stats map_stats_of(struct prudence_map *map)
{
    struct prudence_map_stats stats;

    assert_int_equal(prudence_map_stats(map, &stats), 0);
    return stats;
}

struct map_check {
    struct prudence_map *map;
    uint8_t path[MAP_DEEPEST + 8];
    uint64_t objects, nodes, bytes;
    bool tidy; /* no node is larger than necessary */
};

static inline void map_check_object(struct map_check *check, uintptr_t link, size_t at, bool ends)
{
    const struct map_key key = map_key_of(map_object(link), check->map->bytes);

    assert_true(ends ? key.length == at : key.length >= at);
    for (size_t i = 0; i < at; i++)
        assert_int_equal(map_key_byte(&key, i), check->path[i]);
    check->objects++;
}

static inline void map_check_link(struct map_check *check, uintptr_t link, size_t at);

static inline unsigned map_check_slots(struct map_check *check, struct map_node *node, size_t at)
{
    unsigned live = 0, slots = 0;

    for (unsigned byte = 0; byte < 256; byte++) {
        const uintptr_t *slot = map_slot(node, (uint8_t)byte);

        slots += slot != NULL;
        if (!slot || !*slot)
            continue;
        live++;
        check->path[at] = (uint8_t)byte;
        map_check_link(check, *slot, at + 1);
    }
    assert_int_equal(slots, node->kind == MAP_ALL ? 256 : node->used);
    return live;
}

static inline void map_check_node(struct map_check *check, struct map_node *node, size_t at)
{
    unsigned length = map_prefix_length(node->prefix), live = 0, byte;

    assert_int_equal(node->lock, MAP_FREE);
    assert_true(length <= MAP_PREFIX_MOST && node->kind < MAP_KINDS);
    for (unsigned i = 0; i < length; i++)
        check->path[at++] = map_prefix_byte(node->prefix, i);
    if (node->end) {
        map_check_object(check, node->end, at, true);
        live++;
    }
    live += map_check_slots(check, node, at);
    assert_int_equal(live, node->live);
    assert_true(live > 0);
    check->nodes++;
    check->bytes += map_node_bytes(node->kind);
    if (!check->tidy)
        return;
    if (live == 1) /* cutting a long prefix may leave two parts that could be joined */
        assert_false(map_is_object(map_node_only_link(node, &byte)));
    assert_true(node->kind == MAP_FOUR || live > map_capacity[node->kind - 1] / 2);
}

static inline void map_check_link(struct map_check *check, uintptr_t link, size_t at)
{
    if (map_is_object(link))
        map_check_object(check, link, at, false);
    else
        map_check_node(check, map_inner(link), at);
}

static inline void check_map(struct prudence_map *map, bool tidy)
{
    struct map_check check = {.map = map, .tidy = tidy};
    uint64_t entries = 0, latent = 0;

    entries_add_bytes(&map->entries, &entries, &latent);
    assert_int_equal(map->top.node.lock, MAP_FREE);
    if (map->top.root)
        map_check_link(&check, map->top.root, 0);
    assert_int_equal(check.objects, prudence_map_count(map));
    assert_int_equal(check.nodes, map_stats_of(map).nodes);
    assert_int_equal(check.bytes + map->allocated + entries, map_stats_of(map).bytes_live);
}

#endif /* TESTS_SUPPORT_MAP_INVARIANTS_H */
