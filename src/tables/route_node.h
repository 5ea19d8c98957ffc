/* SPDX-License-Identifier: MIT */
/*
 * A node of the trie of routes (routes.h): two bitmaps, then a word for each bit set in them, in
 * the layout that <prudence/routes.h> gives readers.
 *
 * Prefixes are bits 1 to 63, numbered as in a heap. Bit 1 is the prefix that ends before the node's
 * 6 bits, bits 2 and 3 are the prefixes that end after the first bit, and 2n and 2n + 1 are those
 * that are one bit longer than n. Slots, which have all 6 bits, follow as 64 to 127. Bit 0 is for
 * the value inherited from above the node.
 */
#ifndef TABLES_ROUTE_NODE_H
#define TABLES_ROUTE_NODE_H

#include <prudence/routes.h>

#include "base/base.h"

struct route_node {
    uint64_t prefixes, children; /* constant while a reader may be in the node */
    uint64_t words[];            /* children (edges), then values */
};

/*
 * In tables of IPv6, the word before a node, also constant, holds the address bits that lead there,
 * at most the last 64. So a node may hang several levels below another one. The edge is the address
 * of the lower node, and says in the highest byte how many bits are in between.
 */
#define ROUTE_PATH_BYTES sizeof(uint64_t)

static inline uint64_t *route_path(const struct route_node *node)
{
    return (uint64_t *)(uintptr_t)node - 1;
}

static inline uint64_t route_edge(const struct route_node *node, unsigned levels_between)
{
    return (uint64_t)(uintptr_t)node | (uint64_t)(6 * levels_between) << PRUDENCE_ROUTES_SKIP_SHIFT;
}

static inline struct route_node *route_edge_node(uint64_t edge)
{
    return (struct route_node *)(uintptr_t)(edge & PRUDENCE_ROUTES_ADDRESS_MASK);
}

static inline bool route_edge_skips(uint64_t edge)
{
    return edge >> PRUDENCE_ROUTES_SKIP_SHIFT;
}

/* Returns the number of levels in between. */
static inline unsigned route_edge_levels(uint64_t edge)
{
    return (unsigned)(edge >> PRUDENCE_ROUTES_SKIP_SHIFT) / 6;
}

#define ROUTE_VALUE_MOST  (PRUDENCE_ROUTES_NODE - 1)
#define ROUTE_BIT(number) (UINT64_C(1) << (number))
#define ROUTE_ABOVE       0u /* bit of the value from above */
#define ROUTE_FIRST       1u /* all other prefixes are below this bit */
#define ROUTE_NODE_SIZES  11u
#define ROUTE_NODE_WORDS  128u /* at most: 63 prefixes, 64 children, and `above` */

static inline bool route_has(uint64_t bits, unsigned bit)
{
    return bits >> bit & 1;
}

/* Returns how many of the bits below this one are set. */
static inline unsigned route_rank(uint64_t bits, unsigned bit)
{
    return (unsigned)prudence_routes_ones_(bits & ((UINT64_C(1) << bit) - 1));
}

/* Return the index of a word in `words`. */
static inline unsigned route_child_at(const struct route_node *node, unsigned slot)
{
    return route_rank(node->children, slot);
}

static inline unsigned route_value_at(const struct route_node *node, unsigned bit)
{
    return (unsigned)prudence_routes_ones_(node->children) + route_rank(node->prefixes, bit);
}

static inline uint64_t route_child_edge(const struct route_node *node, unsigned slot)
{
    return __atomic_load_n(&node->words[route_child_at(node, slot)], __ATOMIC_ACQUIRE);
}

static inline struct route_node *route_child(const struct route_node *node, unsigned slot)
{
    return route_edge_node(route_child_edge(node, slot));
}

static inline uint64_t route_word(const struct route_node *node, unsigned bit)
{
    return __atomic_load_n(&node->words[route_value_at(node, bit)], __ATOMIC_ACQUIRE);
}

/* Returns the longest prefix that matches the slot, with a bit below `bound`. */
static inline unsigned route_longest_below(const struct route_node *node, unsigned slot,
                                           unsigned bound)
{
    return 63u ^ (unsigned)__builtin_clzll(node->prefixes & prudence_routes_matching_(slot) &
                                           (bound < 64 ? ROUTE_BIT(bound) - 1 : UINT64_MAX));
}

static inline unsigned route_longest(const struct route_node *node, unsigned slot)
{
    return route_longest_below(node, slot, 64);
}

/* Returns how many of the node's 6 bits the prefix or slot fixes. */
static inline unsigned route_bit_length(unsigned bit)
{
    return 31u ^ (unsigned)__builtin_clz(bit);
}

/* Return the first slot that matches, and a bitmap of all of them. */
static inline unsigned route_first_slot(unsigned bit)
{
    return (bit << (6 - route_bit_length(bit))) - 64;
}

static inline uint64_t route_slots(unsigned bit)
{
    return UINT64_MAX >> (64 - (64u >> route_bit_length(bit))) << route_first_slot(bit);
}

static inline unsigned route_node_words(const struct route_node *node)
{
    return (unsigned)(prudence_routes_ones_(node->prefixes) +
                      prudence_routes_ones_(node->children));
}

/* Sizes of nodes in bytes, with the bytes before the node; 0 ends the list. */
extern HIDDEN const unsigned short route_sizes_near[ROUTE_NODE_SIZES],
    route_sizes_far[ROUTE_NODE_SIZES];

/* Fill a node that no reader sees: with `above` only, with all of `from`, with one word more, or
 * with one less. */
void route_node_first(struct route_node *node, uint64_t above);
void route_node_copy(struct route_node *node, const struct route_node *from);
void route_node_with_prefix(struct route_node *node, const struct route_node *from, unsigned bit,
                            uint64_t word);
void route_node_with_child(struct route_node *node, const struct route_node *from, unsigned slot,
                           uint64_t edge);
void route_node_without_prefix(struct route_node *node, const struct route_node *from,
                               unsigned bit);
void route_node_without_child(struct route_node *node, const struct route_node *from,
                              unsigned slot);

#endif /* TABLES_ROUTE_NODE_H */
