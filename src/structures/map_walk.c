/* SPDX-License-Identifier: MIT */
/*
 * Ordered maps: walks. A walk finds one object, and takes with it those that follow in the same node, up to the first link
 * that leads to another node. Then it searches for the key above the last.
 */
#include "structures/map.h"

#define ABOVE 0u

static void take(struct prudence_map_walk *walk, uintptr_t link)
{
    walk->objects[walk->count++] = map_object(link);
    __builtin_prefetch(map_object(link));
}

/* The slots of a list by their bytes. A slot that was added after `used` was loaded is left out: its key was added during the
 * walk. */
static void take_from_list(struct prudence_map_walk *walk, struct map_node *node, unsigned above)
{
    const unsigned used = load_acquire(&node->used);
    const uintptr_t *slots = map_slots(node);
    uint8_t slot_of[MAP_NO_BYTE] UNINITIALIZED;
    uint64_t set[4] = {0};

    for (unsigned i = 0; i < used; i++) {
        unsigned byte = map_byte_in_list(node, i);

        if (byte < above)
            continue;
        set[byte / 64] |= UINT64_C(1) << byte % 64;
        slot_of[byte] = (uint8_t)i;
    }
    for (unsigned word = 0; word < 4; word++) {
        for (uint64_t rest = set[word]; rest; rest &= rest - 1) {
            unsigned byte = 64 * word + (unsigned)__builtin_ctzll(rest);
            uintptr_t link = load_acquire(&slots[slot_of[byte]]);

            if (link && (!map_is_object(link) || walk->count == PRUDENCE_MAP_WALK))
                return;
            if (link)
                take(walk, link);
        }
    }
}

static void take_from_table(struct prudence_map_walk *walk, struct map_node *node, unsigned above)
{
    while (walk->count < PRUDENCE_MAP_WALK) {
        uintptr_t link;
        unsigned byte = map_next_byte(node, above, ABOVE, &link);

        if (byte == MAP_NO_BYTE || !map_is_object(link))
            return;
        take(walk, link);
        above = byte + 1;
    }
}

/* The object that was found, and those behind it in its node. */
static struct prudence_map_node *fill(struct prudence_map_walk *walk, struct map_found found)
{
    unsigned above = found.byte == MAP_NO_BYTE ? 0 : found.byte + 1;

    walk->next = walk->count = 0;
    if (!found.link)
        return NULL;
    take(walk, found.link);
    if (found.node && found.node->kind < MAP_NINETY)
        take_from_list(walk, found.node, above);
    else if (found.node)
        take_from_table(walk, found.node, above);
    return walk->objects[walk->next++];
}

static struct prudence_map_node *begin(struct prudence_map_walk *walk,
                                       const struct prudence_map *map, const struct map_key *key)
{
    walk->map = map;
    walk->next = walk->count = 0;
    return map_key_fits(map, key) ? fill(walk, map_seek(map, key, ABOVE, false)) : NULL;
}

struct prudence_map_node *prudence_map_first(struct prudence_map_walk *walk,
                                             const struct prudence_map *map)
{
    walk->map = map;
    return fill(walk, map_extreme(map, ABOVE));
}

struct prudence_map_node *prudence_map_first_from(struct prudence_map_walk *walk,
                                                  const struct prudence_map *map, uint64_t number)
{
    struct map_key key = map_key_of_number(number);

    return begin(walk, map, &key);
}

struct prudence_map_node *prudence_map_first_from_bytes(struct prudence_map_walk *walk,
                                                        const struct prudence_map *map,
                                                        const void *bytes, size_t length)
{
    struct map_key key = map_key_of_bytes(bytes, length);

    return begin(walk, map, &key);
}

struct prudence_map_node *prudence_map_next_slow(struct prudence_map_walk *walk)
{
    struct map_key last;

    if (!walk->count)
        return NULL;
    last = map_key_of(walk->objects[walk->count - 1], walk->map->bytes);
    return fill(walk, map_seek(walk->map, &last, ABOVE, true));
}
