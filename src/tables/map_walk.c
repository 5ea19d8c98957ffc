/* SPDX-License-Identifier: MIT */
/*
 * Walks over ordered maps. A walk takes some objects at once, from as many nodes as hold them, and
 * then searches for the key above the last. On the way, it keeps the nodes that it is in, each with
 * the byte at which to go on: the trail.
 *
 * A node of the trail may be gone by the time the walk comes back. This does no harm. Keys that are
 * there during the whole walk are in the node, as they were when it was unlinked, and the walk need
 * not find any others. So when a node has nothing remaining, the walk goes on in the node above.
 */
#include "tables/map.h"
#include "tables/map_read.h"

#define ABOVE 0u

#define TRAIL_MOST 16u

struct step {
    struct map_node *node;
    unsigned from; /* lowest byte that is not passed */
    bool end;      /* `end` is not passed */
};

struct trail {
    struct prudence_map_walk *walk;
    struct step steps[TRAIL_MOST];
    unsigned count;
    bool cut; /* the highest nodes were dropped, and may lead to more objects */
};

static void map_walk_take(struct prudence_map_walk *walk, uintptr_t link)
{
    walk->objects[walk->count++] = map_object(link);
    __builtin_prefetch(map_object(link));
}

static void map_walk_push(struct trail *trail, struct map_node *node, unsigned from, bool end)
{
    if (trail->count == TRAIL_MOST) {
        trail->cut = true;
        trail->count--;
        __builtin_memmove(&trail->steps[0], &trail->steps[1],
                          trail->count * sizeof trail->steps[0]);
    }
    trail->steps[trail->count++] = (struct step){.node = node, .from = from, .end = end};
}

/*
 * Takes objects from a node up to the first link that leads to another node, and returns this link.
 * Returns 0 if there is none, or if the walk has enough. A set of bytes gives the order of the
 * slots of a list. A slot that was added after `used` was loaded is skipped, because the key was
 * added during the walk.
 */
static uintptr_t take_from_list(struct prudence_map_walk *walk, struct step *step)
{
    const unsigned used = load_acquire(&step->node->used);
    const uintptr_t *slots = map_slots(step->node);
    uint8_t slot_of[MAP_NO_BYTE] UNINITIALIZED;
    uint64_t set[4] = {0};

    for (unsigned i = 0; i < used; i++) {
        unsigned byte = map_byte_in_list(step->node, i);

        set[byte / 64] |= (uint64_t)(byte >= step->from) << byte % 64;
        slot_of[byte] = narrow(uint8_t, i);
    }
    for (unsigned word = 0; word < 4; word++) {
        for (uint64_t rest = set[word]; rest; rest &= rest - 1) {
            unsigned byte = 64 * word + (unsigned)__builtin_ctzll(rest);
            uintptr_t link = load_acquire(&slots[slot_of[byte]]);

            if (walk->count == PRUDENCE_MAP_WALK)
                return 0;
            step->from = byte + 1;
            if (link && !map_is_object(link))
                return link;
            if (link)
                map_walk_take(walk, link);
        }
    }
    step->from = MAP_NO_BYTE;
    return 0;
}

static uintptr_t take_from_table(struct prudence_map_walk *walk, struct step *step)
{
    while (walk->count < PRUDENCE_MAP_WALK) {
        uintptr_t link = 0;
        unsigned byte = map_node_next_byte(step->node, step->from, ABOVE, &link);

        step->from = (unsigned)min_size(byte + 1, MAP_NO_BYTE);
        if (!link || !map_is_object(link))
            return link;
        map_walk_take(walk, link);
    }
    return 0;
}

static uintptr_t take_from(struct prudence_map_walk *walk, struct step *step)
{
    if (step->end) {
        uintptr_t link = load_acquire(&step->node->end);

        step->end = false;
        if (link)
            map_walk_take(walk, link);
    }
    return step->node->kind < MAP_NINETY ? take_from_list(walk, step) : take_from_table(walk, step);
}

/* Follows the trail until the walk has enough or no objects remain. */
static void follow(struct trail *trail)
{
    while (trail->count && trail->walk->count < PRUDENCE_MAP_WALK) {
        uintptr_t below = take_from(trail->walk, &trail->steps[trail->count - 1]);

        if (below)
            map_walk_push(trail, map_inner(below), 0, true);
        else if (trail->walk->count < PRUDENCE_MAP_WALK)
            trail->count--;
    }
}

/* Follows the key, and leaves everything above the key in the trail. `strictly` leaves out the key
 * itself. */
static void map_walk_go_to(struct trail *trail, const struct map_key *key, bool strictly)
{
    uintptr_t link = load_acquire(&trail->walk->map->top.root);
    size_t at = 0;

    while (link && !map_is_object(link)) {
        struct map_node *node = map_inner(link);
        enum map_way way = map_read_way_at_prefix(node, key, &at, ABOVE);
        const uintptr_t *slot;

        if (way == MAP_WAY_NONE)
            return;
        if (way == MAP_WAY_ALL || at == key->length) {
            map_walk_push(trail, node, 0, way == MAP_WAY_ALL || !strictly);
            return;
        }
        slot = map_slot_of_key(node, key, at);
        map_walk_push(trail, node, map_key_byte(key, at++) + 1u, false);
        link = slot ? load_acquire(slot) : 0;
    }
    if (link && map_read_way_at_object(link, key, ABOVE, strictly) == MAP_WAY_ALL)
        map_walk_take(trail->walk, link);
}

static struct prudence_map_node *map_walk_fill(struct prudence_map_walk *walk,
                                               const struct map_key *key, bool strictly)
{
    struct trail trail UNINITIALIZED;

    trail.walk = walk;
    trail.count = 0;
    trail.cut = false;
    walk->next = walk->count = 0;
    map_walk_go_to(&trail, key, strictly);
    follow(&trail);
    if (!walk->count && trail.cut) {
        uintptr_t link = map_read_seek(walk->map, key, ABOVE, strictly);

        if (link)
            map_walk_take(walk, link);
    }
    return walk->count ? walk->objects[walk->next++] : NULL;
}

static struct prudence_map_node *map_walk_begin(struct prudence_map_walk *walk,
                                                const struct prudence_map *map,
                                                const struct map_key *key)
{
    walk->map = map;
    walk->next = walk->count = 0;
    return map_key_fits(map, key) ? map_walk_fill(walk, key, false) : NULL;
}

struct prudence_map_node *prudence_map_first(struct prudence_map_walk *walk,
                                             const struct prudence_map *map)
{
    const struct map_key lowest = map->bytes ? map_key_of_bytes("", 0) : map_key_of_number(0);

    return map_walk_begin(walk, map, &lowest);
}

struct prudence_map_node *prudence_map_first_from(struct prudence_map_walk *walk,
                                                  const struct prudence_map *map, uint64_t number)
{
    const struct map_key key = map_key_of_number(number);

    return map_walk_begin(walk, map, &key);
}

struct prudence_map_node *prudence_map_first_from_bytes(struct prudence_map_walk *walk,
                                                        const struct prudence_map *map,
                                                        const void *bytes, size_t length)
{
    const struct map_key key = map_key_of_bytes(bytes, length);

    return map_walk_begin(walk, map, &key);
}

struct prudence_map_node *prudence_map_next_slow(struct prudence_map_walk *walk)
{
    struct map_key last;

    if (!walk->count)
        return NULL;
    last = map_key_of(walk->objects[walk->count - 1], walk->map->bytes);
    return map_walk_fill(walk, &last, true);
}
