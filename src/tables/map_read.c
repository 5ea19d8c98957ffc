/* SPDX-License-Identifier: MIT */
/*
 * Lookups in ordered maps, and searches for the nearest key.
 *
 * A reader goes from link to link, and loads each once; tables/map.h says why this is safe
 * during any update. A lookup takes effect when it loads the last link or, if the node of that link
 * was gone, when that node was unlinked. At either moment, the way that the lookup took led there.
 *
 * A search for the nearest key above follows the key, and keeps the last link that it passed on the
 * right. If the way ends without a key that is high enough, the lowest key below that link is the
 * next one. A key that is there all the time is not missed, because its link was there when the
 * node was read, and was found unless a lower one was.
 */
#include "tables/map.h"
#include "tables/map_read.h"

/* The callers say whether the key is a number, so the compiler makes a loop for each kind. */
static inline __attribute__((always_inline)) struct prudence_map_node *
look_up(const struct prudence_map *map, const struct map_key *key)
{
    uintptr_t link = load_acquire(&map->top.root);
    size_t at = 0;

    while (link && !map_is_object(link)) {
        struct map_node *node = map_inner(link);
        const uintptr_t *slot = &node->end;

        if (!map_pass_prefix(node->prefix, key, &at))
            return NULL;
        if (unlikely(at == key->length)) {
            link = load_acquire(slot);
            break;
        }
        slot = map_slot_of_key(node, key, at++);
        if (!slot)
            return NULL;
        link = load_acquire(slot);
    }
    if (link) {
        struct map_key there = map_key_of(map_object(link), key->bytes != NULL);

        if (map_key_is(&there, key))
            return map_object(link);
    }
    return NULL;
}

struct prudence_map_node *map_lookup(const struct prudence_map *map, const struct map_key *key)
{
    return look_up(map, key);
}

struct prudence_map_node *prudence_map_lookup(const struct prudence_map *map, uint64_t number)
{
    struct map_key key = map_key_of_number(number);

    return map_key_fits(map, &key) ? look_up(map, &key) : NULL;
}

struct prudence_map_node *prudence_map_lookup_bytes(const struct prudence_map *map,
                                                    const void *bytes, size_t length)
{
    struct map_key key = map_key_of_bytes(bytes, length);

    return key.bytes && map_key_fits(map, &key) ? look_up(map, &key) : NULL;
}

/* ------------------------------------------------------------------------------ the nearest key */

/* Returns the link of the first byte from `from` on, in the direction of `flip`, or 0. */
static uintptr_t next_byte(struct map_node *node, unsigned from, unsigned flip)
{
    uintptr_t link = 0;

    map_node_next_byte(node, from, flip, &link);
    return link;
}

/* Like next_byte, but with `end`, which is below all bytes. */
static uintptr_t next_link(struct map_node *node, unsigned from, unsigned flip)
{
    uintptr_t link = from == 0 && !flip ? load_acquire(&node->end) : 0;

    if (!link)
        link = next_byte(node, from, flip);
    return link || !flip ? link : load_acquire(&node->end);
}

/* Returns the first object below a link. Returns 0 if other threads added and removed objects
 * in that time, and no link was there when its turn came. */
static uintptr_t first_below(uintptr_t link, unsigned flip)
{
    while (link && !map_is_object(link))
        link = next_link(map_inner(link), 0, flip);
    return link;
}

enum map_way map_read_way_at_object(uintptr_t link, const struct map_key *key, unsigned flip,
                                    bool strictly)
{
    struct map_key there = map_key_of(map_object(link), key->bytes != NULL);
    int order = map_key_compare(&there, key);

    if (order == 0)
        return strictly ? MAP_WAY_NONE : MAP_WAY_ALL;
    return (order > 0) == !flip ? MAP_WAY_ALL : MAP_WAY_NONE;
}

enum map_way map_read_way_at_prefix(const struct map_node *node, const struct map_key *key,
                                    size_t *at, unsigned flip)
{
    unsigned common = map_prefix_common(node->prefix, key, *at);
    bool above;

    *at += common;
    if (common == map_prefix_length(node->prefix))
        return MAP_WAY_DOWN;
    above = *at == key->length || map_prefix_byte(node->prefix, common) > map_key_byte(key, *at);
    return above == !flip ? MAP_WAY_ALL : MAP_WAY_NONE;
}

/* Returns the link to the object whose key ends at the node or, in a search above, else the first
 * link after that. */
static uintptr_t at_end(struct map_node *node, unsigned flip, bool strictly)
{
    uintptr_t link = strictly ? 0 : load_acquire(&node->end);

    return link || flip ? link : next_byte(node, 0, flip);
}

/* Takes a step down from *link. `*beside` is the last link passed on the side that is searched. */
static enum map_way step_down(uintptr_t *link, uintptr_t *beside, const struct map_key *key,
                              size_t *at, unsigned flip, bool strictly)
{
    struct map_node *node = map_inner(*link);
    enum map_way way = map_read_way_at_prefix(node, key, at, flip);
    const uintptr_t *slot;
    uintptr_t next;
    uint8_t byte;

    if (way != MAP_WAY_DOWN)
        return way;
    if (*at == key->length) {
        *link = at_end(node, flip, strictly);
        return *link ? MAP_WAY_ALL : MAP_WAY_NONE;
    }
    byte = map_key_byte(key, (*at)++);
    next = next_link(node, (byte ^ flip) + 1u, flip);
    if (next)
        *beside = next;
    slot = map_slot(node, byte);
    *link = slot ? load_acquire(slot) : 0;
    return MAP_WAY_DOWN;
}

/* Returns false if the search must be repeated. */
static bool seek(const struct prudence_map *map, const struct map_key *key, unsigned flip,
                 bool strictly, uintptr_t *found)
{
    uintptr_t beside = 0, link = load_acquire(&map->top.root);
    enum map_way way = MAP_WAY_DOWN;
    size_t at = 0;

    while (way == MAP_WAY_DOWN && link && !map_is_object(link))
        way = step_down(&link, &beside, key, &at, flip, strictly);
    if (way == MAP_WAY_DOWN)
        way = link ? map_read_way_at_object(link, key, flip, strictly) : MAP_WAY_NONE;
    if (way == MAP_WAY_NONE)
        link = beside;
    *found = first_below(link, flip);
    return *found || !link;
}

uintptr_t map_read_seek(const struct prudence_map *map, const struct map_key *key, unsigned flip,
                        bool strictly)
{
    uintptr_t link;

    while (!seek(map, key, flip, strictly, &link)) {
    }
    return link;
}

static struct prudence_map_node *nearest(const struct prudence_map *map, const struct map_key *key,
                                         unsigned flip, bool strictly)
{
    uintptr_t link = map_key_fits(map, key) ? map_read_seek(map, key, flip, strictly) : 0;

    return link ? map_object(link) : NULL;
}

#define ABOVE 0u
#define BELOW 255u

struct prudence_map_node *prudence_map_ceiling(const struct prudence_map *map, uint64_t number)
{
    struct map_key key = map_key_of_number(number);

    return nearest(map, &key, ABOVE, false);
}

struct prudence_map_node *prudence_map_ceiling_bytes(const struct prudence_map *map,
                                                     const void *bytes, size_t length)
{
    struct map_key key = map_key_of_bytes(bytes, length);

    return nearest(map, &key, ABOVE, false);
}

struct prudence_map_node *prudence_map_floor(const struct prudence_map *map, uint64_t number)
{
    struct map_key key = map_key_of_number(number);

    return nearest(map, &key, BELOW, false);
}

struct prudence_map_node *prudence_map_floor_bytes(const struct prudence_map *map,
                                                   const void *bytes, size_t length)
{
    struct map_key key = map_key_of_bytes(bytes, length);

    return nearest(map, &key, BELOW, false);
}

struct prudence_map_node *prudence_map_after(const struct prudence_map *map,
                                             const struct prudence_map_node *node)
{
    struct map_key key = map_key_of(node, map->bytes);

    return nearest(map, &key, ABOVE, true);
}

struct prudence_map_node *prudence_map_before(const struct prudence_map *map,
                                              const struct prudence_map_node *node)
{
    struct map_key key = map_key_of(node, map->bytes);

    return nearest(map, &key, BELOW, true);
}

static struct prudence_map_node *extreme(const struct prudence_map *map, unsigned flip)
{
    uintptr_t root, link;

    do {
        root = load_acquire(&map->top.root);
        link = first_below(root, flip);
    } while (root && !link);
    return link ? map_object(link) : NULL;
}

struct prudence_map_node *prudence_map_lowest(const struct prudence_map *map)
{
    return extreme(map, ABOVE);
}

struct prudence_map_node *prudence_map_highest(const struct prudence_map *map)
{
    return extreme(map, BELOW);
}
