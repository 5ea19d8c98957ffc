/* SPDX-License-Identifier: MIT */
/*
 * Inner nodes of ordered maps. A node has a prefix of up to 7 bytes, which all keys below it have at its place, and a
 * link for each byte that may follow: to an object (the only one whose key begins so), or to another node. `end` is
 * the link to the object whose key ends behind the prefix. 0: there is nothing.
 *
 * Five kinds, which differ in how the link of a byte is found:
 *
 *     FOUR, EIGHTEEN, FORTY    so many slots, and a list of their bytes in the order in which they came
 *     NINETY                   93 slots, and a table from all bytes to slots
 *     ALL                      256 slots, one for each byte
 *
 * Readers look while one writer, which holds the node's lock, changes it:
 *  - Kind and prefix never change. A slot keeps its byte as long as the node lives, also when its link is 0.
 *  - A new slot gets its link first and its byte second; then `used` or the table, by a release, which a reader acquires.
 *  - A node that is replaced is MAP_GONE, and is not written any more.
 */
#ifndef STRUCTURES_MAP_NODE_H
#define STRUCTURES_MAP_NODE_H

#include "base/atomic.h"
#include "base/base.h"
#include "os/os.h"

enum map_kind {
    MAP_FOUR,
    MAP_EIGHTEEN,
    MAP_FORTY,
    MAP_NINETY,
    MAP_ALL,
    MAP_KINDS,
};

enum map_lock_state {
    MAP_FREE,
    MAP_LOCKED,
    MAP_GONE, /* for good: another node is in its place, or none */
};

struct map_node {
    uint32_t lock; /* of enum map_lock_state; not used by readers */
    uint16_t live; /* links that are not 0, and `end`; written under the lock */
    uint8_t used;  /* slots that have a byte, except in ALL; written under the lock */
    uint8_t kind;
    uint64_t prefix; /* the first byte highest; how many they are in the lowest byte */
    uintptr_t end;
};

/* Behind it: the bytes of slots, then links. */
static inline uint64_t *map_words(struct map_node *node)
{
    return (uint64_t *)(node + 1);
}

#define MAP_PREFIX_MOST 7u

static const uint16_t map_capacity[MAP_KINDS] = {4, 18, 40, 93, 256};
static const uint16_t map_byte_words[MAP_KINDS] = {1, 3, 5, 32, 0};

static inline size_t map_node_bytes(unsigned kind)
{
    return sizeof(struct map_node) + sizeof(uint64_t) * (map_byte_words[kind] + map_capacity[kind]);
}

/* ---------------------------------------------------------------------------------------- links */

/* A link's lowest bit says that it leads to an object. */
static inline bool map_is_object(uintptr_t link)
{
    return link & 1;
}

/* Where an object is found, or about to be linked, ThreadSanitizer is told. */
static inline struct prudence_map_node *map_object(uintptr_t link)
{
    struct prudence_map_node *object = (struct prudence_map_node *)(link - 1);

    tell_acquire(object);
    return object;
}

static inline uintptr_t map_link_to(const struct prudence_map_node *object)
{
    tell_release(object);
    return (uintptr_t)object + 1;
}

static inline struct map_node *map_inner(uintptr_t link)
{
    return (struct map_node *)link;
}

/* ------------------------------------------------------------------------------------- prefixes */

static inline unsigned map_prefix_length(uint64_t prefix)
{
    return (unsigned)(prefix & 0xff);
}

static inline uint8_t map_prefix_byte(uint64_t prefix, unsigned index)
{
    return (uint8_t)(prefix >> (56 - 8 * index));
}

/* The first `length` bytes of a window. */
static inline uint64_t map_prefix(uint64_t window, unsigned length)
{
    return length ? (window >> (64 - 8 * length) << (64 - 8 * length)) | length : 0;
}

/* What is left behind the first `drop` bytes. */
static inline uint64_t map_prefix_behind(uint64_t prefix, unsigned drop)
{
    return map_prefix((prefix & ~UINT64_C(0xff)) << 8 * drop, map_prefix_length(prefix) - drop);
}

/* `above`, a byte, `below`: no more than MAP_PREFIX_MOST bytes. */
static inline uint64_t map_prefix_join(uint64_t above, uint8_t byte, uint64_t below)
{
    unsigned length = map_prefix_length(above) + 1;
    uint64_t bytes = (above & ~UINT64_C(0xff)) | (uint64_t)byte << (64 - 8 * length);

    bytes |= (below & ~UINT64_C(0xff)) >> 8 * length;
    return map_prefix(bytes, length + map_prefix_length(below));
}

/* Whether a key with this window begins with the prefix, where it is long enough for that. */
static inline bool map_prefix_matches(uint64_t prefix, uint64_t window)
{
    return ((prefix ^ window) >> 8) >> (56 - 8 * map_prefix_length(prefix)) == 0;
}

/* ---------------------------------------------------------------------------------------- slots */

static inline uintptr_t *map_slots(struct map_node *node)
{
    return (uintptr_t *)&map_words(node)[map_byte_words[node->kind]];
}

/* Of a node with a list of `words` words. The lowest byte that is 0 in `differ` has the lowest bit that is set in `zeros`;
 * bits above it may be wrong. Words that are not used yet are 0. */
static inline uintptr_t *map_slot_in_list(struct map_node *node, uint8_t byte, unsigned words)
{
    const unsigned used = load_acquire(&node->used);

    for (unsigned i = 0; i < words; i++) {
        uint64_t differ = load_relaxed(&map_words(node)[i]) ^ byte * UINT64_C(0x0101010101010101);
        uint64_t zeros =
            (differ - UINT64_C(0x0101010101010101)) & ~differ & UINT64_C(0x8080808080808080);

        if (zeros) {
            unsigned slot = 8 * i + (unsigned)__builtin_ctzll(zeros) / 8;

            return slot < used ? (uintptr_t *)&map_words(node)[words + slot] : NULL;
        }
    }
    return NULL;
}

static inline uint8_t *map_table(struct map_node *node)
{
    return (uint8_t *)map_words(node);
}

/* The slot of a byte; NULL: it has none. */
static inline uintptr_t *map_slot(struct map_node *node, uint8_t byte)
{
    unsigned slot;

    switch (node->kind) {
    case MAP_FOUR:
        return map_slot_in_list(node, byte, 1);
    case MAP_EIGHTEEN:
        return map_slot_in_list(node, byte, 3);
    case MAP_FORTY:
        return map_slot_in_list(node, byte, 5);
    case MAP_NINETY:
        slot = load_acquire(&map_table(node)[byte]);
        return slot ? (uintptr_t *)&map_words(node)[32 + slot - 1] : NULL;
    default:
        return (uintptr_t *)&map_words(node)[byte];
    }
}

/* The byte of a slot of a list. */
static inline uint8_t map_byte_in_list(struct map_node *node, unsigned slot)
{
    return (uint8_t)(load_relaxed(&map_words(node)[slot / 8]) >> 8 * (slot % 8));
}

#define MAP_NO_BYTE 256u

/*
 * Of the bytes that have a link, the lowest that is not below `from`, and that link; MAP_NO_BYTE: there is none. With
 * `flip` = 255 all bytes are taken as 255 - byte, so it goes from high to low. Each link is read once at most: a link that
 * is there all the time is found, unless one before it is.
 */
unsigned map_next_byte(struct map_node *node, unsigned from, unsigned flip, uintptr_t *link);

/* Under the lock, or before other threads can find the node. */
static inline void map_count_link(struct map_node *node)
{
    store_relaxed(&node->live, (uint16_t)(load_relaxed(&node->live) + 1));
}

/* The same. The byte has no slot, and there is room. */
void map_append(struct map_node *node, uint8_t byte, uintptr_t link);

/* The same. An empty node. */
void map_node_init(struct map_node *node, unsigned kind, uint64_t prefix);

/* Makes `to`, which has a prefix and nothing else, have all links that `from` has, whose lock is held. */
void map_copy_links(struct map_node *to, struct map_node *from);

/* The first link of a node, and its byte, MAP_NO_BYTE for `end`: the only one, where that is known under the node's lock, or
 * because it is gone. */
uintptr_t map_only_link(struct map_node *node, unsigned *byte);

static inline bool map_has_room(const struct map_node *node)
{
    return node->kind == MAP_ALL || node->used < map_capacity[node->kind];
}

#endif /* STRUCTURES_MAP_NODE_H */
