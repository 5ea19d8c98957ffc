/* SPDX-License-Identifier: MIT */
/*
 * Inner nodes of ordered maps. A node has a prefix of up to 7 bytes, which all keys below have at
 * the node's place, and a link for each byte that may follow. The link leads to another node, or to
 * an object if no other key begins like that. `end` is the link to the object whose key ends after
 * the prefix. Empty links are 0.
 *
 * The five kinds differ in how they find the link of a byte:
 *
 *     FOUR, EIGHTEEN, FORTY    that number of slots, and a list of their bytes in order of arrival
 *     NINETY                   93 slots, and a table from all bytes to slots
 *     ALL                      256 slots, one for each byte
 *
 * Readers use a node while one writer, which holds the lock, changes it:
 *  - The kind and the prefix never change. A slot keeps its byte for the life of the node, even if
 *    the link is 0.
 *  - A new slot gets its link first and its byte second. Then a release store, which readers
 *    acquire, publishes the slot in `used` or in the table.
 *  - A node that was replaced is MAP_GONE and no longer written.
 */
#ifndef TABLES_MAP_NODE_H
#define TABLES_MAP_NODE_H

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
    MAP_GONE, /* for good: replaced by another node, or unlinked */
};

struct map_node {
    uint32_t lock; /* enum map_lock_state; not used by readers */
    uint16_t live; /* links that are not 0, `end` included; written under the lock */
    uint8_t used;  /* slots that have a byte, except in ALL; written under the lock */
    uint8_t kind;
    uint64_t prefix; /* the first byte highest; the lowest byte is the length */
    uintptr_t end;
};
_Static_assert(FIELD_HOLDS(struct map_node, kind, MAP_KINDS), "no kind is cut off");

/* Returns the words after the node: the bytes of slots, then the links. */
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

/* Returns whether the link leads to an object, as the lowest bit says. */
static inline bool map_is_object(uintptr_t link)
{
    return link & 1;
}

/* Convert between objects and links. They inform ThreadSanitizer that an object was found, or is
 * about to be linked. */
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

/* Returns the first `length` bytes of a window as a prefix. */
static inline uint64_t map_prefix(uint64_t window, unsigned length)
{
    return length ? (window >> (64 - 8 * length) << (64 - 8 * length)) | length : 0;
}

/* Returns the prefix without the first `drop` bytes. */
static inline uint64_t map_prefix_behind(uint64_t prefix, unsigned drop)
{
    return map_prefix((prefix & ~UINT64_C(0xff)) << 8 * drop, map_prefix_length(prefix) - drop);
}

/* Joins `above`, a byte and `below`, together no more than MAP_PREFIX_MOST bytes. */
static inline uint64_t map_prefix_join(uint64_t above, uint8_t byte, uint64_t below)
{
    unsigned length = map_prefix_length(above) + 1;
    uint64_t bytes = (above & ~UINT64_C(0xff)) | (uint64_t)byte << (64 - 8 * length);

    bytes |= (below & ~UINT64_C(0xff)) >> 8 * length;
    return map_prefix(bytes, length + map_prefix_length(below));
}

/* Returns whether a key with this window begins with the prefix, if the key is long enough. */
static inline bool map_prefix_matches(uint64_t prefix, uint64_t window)
{
    return ((prefix ^ window) >> 8) >> (56 - 8 * map_prefix_length(prefix)) == 0;
}

/* ---------------------------------------------------------------------------------------- slots */

static inline uintptr_t *map_slots(struct map_node *node)
{
    return (uintptr_t *)&map_words(node)[map_byte_words[node->kind]];
}

/* Returns the slot of a byte in a node whose list has `words` words, or NULL. The lowest 0 byte of
 * `differ` sets the lowest bit of `zeros`; the bits above may be wrong. Unused words are 0. */
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

/* Returns the slot of a byte, or NULL. */
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

/* Returns the byte of a slot in a list. */
static inline uint8_t map_byte_in_list(struct map_node *node, unsigned slot)
{
    return (uint8_t)(load_relaxed(&map_words(node)[slot / 8]) >> 8 * (slot % 8));
}

#define MAP_NO_BYTE 256u

/*
 * Returns the lowest byte from `from` on that has a link, and stores the link, or returns
 * MAP_NO_BYTE. With `flip` = 255, each byte counts as 255 - byte, so the search goes from high to
 * low. Each link is read at most once. A link that is there all the time is found, unless one
 * before is.
 */
unsigned map_node_next_byte(struct map_node *node, unsigned from, unsigned flip, uintptr_t *link);

/* Counts a new link. For this and the next two functions, the caller holds the lock, or no other
 * thread can find the node yet. */
static inline void map_count_link(struct map_node *node)
{
    store_relaxed(&node->live, narrow(uint16_t, load_relaxed(&node->live) + 1));
}

/* Appends a slot for a byte that has none. The node has room. */
void map_node_append(struct map_node *node, uint8_t byte, uintptr_t link);

/* Makes an empty node. */
void map_node_init(struct map_node *node, unsigned kind, uint64_t prefix);

/* Copies all links of `from`, whose lock is held, to `to`, which has only a prefix. */
void map_node_copy_links(struct map_node *to, struct map_node *from);

/* Returns the first link of a node, and stores its byte, or MAP_NO_BYTE for `end`. Under the lock,
 * or if the node is gone, the caller may know that there is no other. */
uintptr_t map_node_only_link(struct map_node *node, unsigned *byte);

static inline bool map_has_room(const struct map_node *node)
{
    return node->kind == MAP_ALL || node->used < map_capacity[node->kind];
}

#endif /* TABLES_MAP_NODE_H */
