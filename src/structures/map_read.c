/* SPDX-License-Identifier: MIT */
/*
 * Ordered maps: lookups, and searches for the nearest key.
 *
 * A reader goes from link to link, each of which it loads once. That it may do so beside any update: structures/map.h. A
 * lookup takes effect when it loads its last link, or, where that node was gone, when that was unlinked: at both
 * moments the way that it took led there.
 *
 * A search for the nearest key above goes the way of the key, and keeps the last link that it passed on the right. Where the way ends
 * without a key that is high enough, the lowest below that link is the next one. A key that is there all the time is not
 * missed: its link was there when its node was looked at, and was found unless a lower one was.
 */
#include "structures/map.h"

/* A key is a number where the caller says so, and the compiler makes a loop for each kind. */
static inline __attribute__((always_inline)) struct prudence_map_node *
look_up(const struct prudence_map *map, const struct map_key *key)
{
    uintptr_t link = load_acquire(&map->top.root);
    size_t at = 0;

    while (link && !map_is_object(link)) {
        struct map_node *node = map_inner(link);
        const uintptr_t *slot = &node->end;

        if (!map_prefix_matches(node->prefix, map_key_window(key, at)))
            return NULL;
        at += map_prefix_length(node->prefix);
        if (unlikely(at >= key->length)) {
            if (at > key->length)
                return NULL;
            link = load_acquire(slot);
            break;
        }
        slot = map_slot(node, map_key_byte(key, at++));
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

struct prudence_map_node *prudence_map_lookup(const struct prudence_map *map, uint64_t number)
{
    struct map_key key = map_key_of_number(number);

    return map_key_fits(map, &key) ? look_up(map, &key) : NULL;
}

struct prudence_map_node *prudence_map_lookup_bytes(const struct prudence_map *map,
                                                    const void *bytes, size_t length)
{
    struct map_key key = map_key_of_bytes(bytes, length);

    return map_key_fits(map, &key) ? look_up(map, &key) : NULL;
}

/* ------------------------------------------------------------------------------- the nearest key */

static struct map_found found_at(struct map_node *node, unsigned byte, uintptr_t link)
{
    return (struct map_found){.node = node, .byte = byte, .link = link};
}

static struct map_found next_byte_link(struct map_node *node, unsigned from, unsigned flip)
{
    struct map_found found = {.node = node};

    found.byte = map_next_byte(node, from, flip, &found.link);
    return found;
}

/* The link of the first byte from `from` on, in the direction of `flip`; `end` is below all bytes. */
static struct map_found next_link(struct map_node *node, unsigned from, unsigned flip)
{
    struct map_found found = {.node = node, .byte = MAP_NO_BYTE};

    if (from == 0 && !flip)
        found.link = load_acquire(&node->end);
    if (found.link)
        return found;
    found = next_byte_link(node, from, flip);
    if (!found.link && flip)
        found.link = load_acquire(&node->end);
    return found;
}

/* The first object below a link. .link is 0: others added and removed objects in a node while it was looked at, and
 * no link was there when its turn came. */
static struct map_found first_below(struct map_found found, unsigned flip)
{
    while (found.link && !map_is_object(found.link))
        found = next_link(map_inner(found.link), 0, flip);
    return found;
}

struct map_found map_extreme(const struct prudence_map *map, unsigned flip)
{
    struct map_found found;
    uintptr_t link;

    do {
        link = load_acquire(&map->top.root);
        found = first_below(found_at(NULL, 0, link), flip);
    } while (link && !found.link);
    return found;
}

/* How a search goes on at a link on the way of the key. */
enum way {
    WAY_DOWN, /* the next link on the way */
    WAY_ALL,  /* all that is below this link is on the side that is searched */
    WAY_NONE, /* nothing is */
};

static enum way way_at_object(const struct map_found *found, const struct map_key *key,
                              unsigned flip, bool strictly)
{
    struct map_key there = map_key_of(map_object(found->link), key->bytes != NULL);
    int order = map_key_compare(&there, key);

    if (order == 0)
        return strictly ? WAY_NONE : WAY_ALL;
    return (order > 0) == !flip ? WAY_ALL : WAY_NONE;
}

/* At a node at the key's place *at, which moves on to the byte that decides. */
static enum way way_at_prefix(const struct map_node *node, const struct map_key *key, size_t *at,
                              unsigned flip)
{
    unsigned length = map_prefix_length(node->prefix);
    unsigned common = map_prefix_common(node->prefix, key, *at);
    bool above;

    *at += common;
    if (common == length)
        return WAY_DOWN;
    above = *at == key->length ||
            map_prefix_byte(node->prefix, common) > map_key_byte(key, *at);
    return above == !flip ? WAY_ALL : WAY_NONE;
}

/* Where the key ends at a node: the link to its object, or the first one above. */
static struct map_found at_end(struct map_node *node, unsigned flip, bool strictly)
{
    uintptr_t link = strictly ? 0 : load_acquire(&node->end);

    if (link || flip)
        return found_at(node, MAP_NO_BYTE, link);
    return next_byte_link(node, 0, flip);
}

/* A step down from *way; *beside is the last link that was passed on the side that is searched. */
static enum way step_down(struct map_found *way, struct map_found *beside,
                          const struct map_key *key, size_t *at, unsigned flip, bool strictly)
{
    struct map_node *node = map_inner(way->link);
    struct map_found next;
    const uintptr_t *slot;
    enum way go = way_at_prefix(node, key, at, flip);
    unsigned byte;

    if (go != WAY_DOWN)
        return go;
    if (*at == key->length) {
        *way = at_end(node, flip, strictly);
        return way->link ? WAY_ALL : WAY_NONE;
    }
    byte = map_key_byte(key, (*at)++) ^ flip;
    next = next_link(node, byte + 1, flip);
    if (next.link)
        *beside = next;
    slot = map_slot(node, (uint8_t)(byte ^ flip));
    *way = found_at(node, byte, slot ? load_acquire(slot) : 0);
    return WAY_DOWN;
}

/* False: to be searched again. */
static bool seek(const struct prudence_map *map, const struct map_key *key, unsigned flip,
                 bool strictly, struct map_found *found)
{
    struct map_found beside = {0}, way = found_at(NULL, 0, load_acquire(&map->top.root));
    enum way go = WAY_DOWN;
    size_t at = 0;

    while (go == WAY_DOWN && way.link && !map_is_object(way.link))
        go = step_down(&way, &beside, key, &at, flip, strictly);
    if (go == WAY_DOWN)
        go = way.link ? way_at_object(&way, key, flip, strictly) : WAY_NONE;
    if (go == WAY_NONE)
        way = beside;
    *found = first_below(way, flip);
    return found->link || (go == WAY_NONE && !beside.link);
}

struct map_found map_seek(const struct prudence_map *map, const struct map_key *key, unsigned flip,
                          bool strictly)
{
    struct map_found found;

    while (!seek(map, key, flip, strictly, &found)) {
    }
    return found;
}

static struct prudence_map_node *nearest(const struct prudence_map *map, const struct map_key *key,
                                         unsigned flip, bool strictly)
{
    struct map_found found;

    if (!map_key_fits(map, key))
        return NULL;
    found = map_seek(map, key, flip, strictly);
    return found.link ? map_object(found.link) : NULL;
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

struct prudence_map_node *prudence_map_lowest(const struct prudence_map *map)
{
    uintptr_t link = map_extreme(map, ABOVE).link;

    return link ? map_object(link) : NULL;
}

struct prudence_map_node *prudence_map_highest(const struct prudence_map *map)
{
    uintptr_t link = map_extreme(map, BELOW).link;

    return link ? map_object(link) : NULL;
}
