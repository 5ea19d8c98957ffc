/* SPDX-License-Identifier: MIT */
/*
 * Routes (<prudence/routes.h>, ADR 70): a trie that takes 6 bits of an address at each level, and an index into it.
 *
 * Levels. A node of level 0 would stand for the address bits -5 to 0, one of level 1 for bits 1 to 6, and so on, so that the
 * lengths at which real routes are frequent (24, 48) are the longest of their node. The root, of level 0, has the prefix of
 * length 0, and at most two nodes below it. A prefix of some length is in a node of level (length + 5) / 6.
 *
 * Nodes. A node knows its prefixes, the nodes below it, and the value of the longest prefix that is shorter than all its
 * own (`above`). So a lookup goes down to the last node of its address, and has the answer from that one node.
 *
 * The index has a word for each value of the first `bits` bits of an address, which are those above one of the levels: the
 * node of that level, or, where there is none, the value of the longest prefix that matches. Lookups begin there. What
 * is above that level is the truth for writers, get and walks.
 *
 * Of IPv6, a node may hang several levels below another one (route_edge), and some nodes are found by shortcuts
 * (route_shortcut.c, ADR 80). An address that leaves an edge in the middle has its answer from `above` of the node at its end. While
 * a node is in the table, an address that leaves the edge to it goes on doing so: what cuts the edge replaces the node.
 *
 * Invariants, under the lock, between updates:
 *  - `above` of a node is the value that a lookup would have found if the node were not there.
 *  - Every node but the root has a prefix or a node below it, and where edges may skip its level a prefix or two nodes.
 *  - The index says of each word what the trie says.
 *
 * Updates. Words 0 and 1 of a node, and its children's places, are never stored to. An update makes another node and
 * stores its address in the node above, and in the index if it is of that level; nodes that it adds below hang on that one. Then it
 * stores to `above` of nodes, and to words of the index, where the answer was inherited from the prefix. For any one address
 * exactly one of these stores changes the answer. (Where two edges become one, `above` comes first: join_edges says why.)
 *
 * Why a reader's answer is one of a moment during its lookup: what it loads a word from (index, node) was part of the
 * table when its address was loaded, by induction from the first word. If it still is, the word is of now; if it was
 * replaced since, it is not stored to any more, and the word is of the moment when that happened, during the
 * lookup. So the last word, which is the answer, was right at a moment after the one before was.
 *
 * Locks: `lock`, for updates. It is not held where memory is allocated or a node is deferred, both of which may wait for readers:
 * an update first finds out what it needs, allocates it without the lock, and looks again. Fork takes it (fork.c), so a child has no half of an
 * update.
 */
#ifndef STRUCTURES_ROUTES_H
#define STRUCTURES_ROUTES_H

#include <prudence/routes.h>

#include "base/atomic.h"
#include "base/list.h"
#include "os/os.h"
#include "race_detector.h"
#include "structures/route_node.h"

struct prudence_cache;

struct route_table {
    struct prudence_routes public;                   /* stored to under the lock */
    struct prudence_cache *caches[ROUTE_NODE_SIZES]; /* constant, as the next four */
    struct prudence_cache *indexes;
    unsigned length_most;
    unsigned node_front;         /* bytes in front of a node: those of its path, or 0 */
    const unsigned short *sizes; /* of nodes */

    struct os_lock lock __attribute__((aligned(CACHE_LINES_APART)));
    struct route_node *root;    /* this and the rest: under the lock; read by all */
    uint64_t prefixes;          /* read by all */
    uint64_t changes;           /* how often prefixes were added or removed */
    uint64_t nodes, node_bytes; /* in the trie */
    uint64_t edges_across;      /* level 6: those that have shortcuts; read by all */
    uint64_t refused;
    struct list link; /* in route_tables, for fork: under tables_lock */
};

static inline struct route_table *route_table_of(const struct prudence_routes *public)
{
    return (struct route_table *)public;
}

/* ThreadSanitizer is told of a value that is about to be in the table; and of one that was found there, before the program has it. (Of
 * what updates find it knows by the lock.) */
static inline void route_tell_added(const struct route_table *table, uintptr_t value)
{
    tell_release((const void *)prudence_routes_mark_(&table->public, value));
}

static inline uintptr_t route_found(const struct route_table *table, uintptr_t value)
{
    tell_acquire((const void *)prudence_routes_mark_(&table->public, value));
    return value;
}

/* Addresses of either family, left-aligned. */
__extension__ typedef unsigned __int128 route_key;

#define ROUTE_KEY_BITS 128u
#define ROUTE_LEVELS   23u /* of 128 bits, and 5 in front of them */

static inline unsigned route_level_of(unsigned length)
{
    return (length + 5) / 6;
}

/*
 * Of IPv6, most nodes would have one child and nothing else. There are none of those: what is below hangs on what is above
 * (an edge, see route_node.h). Two kinds of levels have a node on every way all the same: all levels of indexes, whose words lead to
 * nodes of one level; and one in the middle, so that no edge has more bits than fit a word.
 */
#define ROUTE_LEVEL_INDEXED 4u /* the widest index ends in front of it */
#define ROUTE_LEVEL_MIDDLE  11u

/* Whether a node of this level stays when it has one child and nothing else. */
static inline bool route_is_always_there(const struct route_table *table, unsigned level)
{
    return !table->node_front || level <= ROUTE_LEVEL_INDEXED || level == ROUTE_LEVEL_MIDDLE;
}

/* The next level on the way from one to another, if nothing else is there. */
static inline unsigned route_level_below(const struct route_table *table, unsigned level,
                                         unsigned last)
{
    if (route_is_always_there(table, level + 1))
        return level + 1;
    return level < ROUTE_LEVEL_MIDDLE && last > ROUTE_LEVEL_MIDDLE ? ROUTE_LEVEL_MIDDLE : last;
}

/* How many bits of an address are before a level; not of level 0. */
static inline unsigned route_bits_before(unsigned level)
{
    return 6 * level - 5;
}

/* The 6 bits of an address that a node of this level takes. Behind the last bit, and before the first, there are zeros. */
static inline unsigned route_slot(route_key key, unsigned level)
{
    const unsigned right = ROUTE_KEY_BITS - 1;

    return (unsigned)(6 * level <= right ? key >> (right - 6 * level)
                                         : key << (6 * level - right)) &
           63;
}

/* The key with these 6 bits there, and zeros behind them. */
static inline route_key route_key_with(route_key key, unsigned level, unsigned slot)
{
    const unsigned right = ROUTE_KEY_BITS - 1;

    if (level == 0)
        return (route_key)slot << right;
    key = key >> (ROUTE_KEY_BITS - route_bits_before(level))
                     << (ROUTE_KEY_BITS - route_bits_before(level));
    return key | (6 * level <= right ? (route_key)slot << (right - 6 * level)
                                     : (route_key)slot >> (6 * level - right));
}

/* The path to the node of this level that the key leads to; not of level 0. */
static inline uint64_t route_path_of(route_key key, unsigned level)
{
    return (uint64_t)(key >> (ROUTE_KEY_BITS - route_bits_before(level)));
}

/* The bit of a prefix in its node. */
static inline unsigned route_bit(route_key key, unsigned length)
{
    const unsigned level = route_level_of(length);

    return (64 + route_slot(key, level)) >> (6 * level + 1 - length);
}

/* Whether the key leads along the edge to its end, a node of this level, and this is not below `last`. */
static inline bool route_is_on_the_way(uint64_t edge, unsigned level, route_key key, unsigned last)
{
    if (likely(!route_edge_skips(edge)))
        return true;
    return level <= last && *route_path(route_edge_node(edge)) == route_path_of(key, level);
}

/* The key with the bits that lead along the edge behind those that lead to it. */
static inline route_key route_key_along(route_key key, unsigned level, uint64_t edge)
{
    const unsigned end = level + 1 + route_edge_levels(edge);

    if (!route_edge_skips(edge))
        return key;
    return key | (route_key)*route_path(route_edge_node(edge))
                     << (ROUTE_KEY_BITS - route_bits_before(end));
}

/* False: it is not a prefix of this table. */
bool route_prefix_key(const struct route_table *table, const struct prudence_prefix *prefix,
                      route_key *key);
void route_key_prefix(const struct route_table *table, route_key key, unsigned length,
                      struct prudence_prefix *prefix);

/* Of nodes of so many words: the number of their size. */
unsigned route_node_size(const struct route_table *table, unsigned words);

/* Nodes of so many words. NULL: there is no memory. */
struct route_node *route_node_make(const struct route_table *table, unsigned words);
void route_node_free(const struct route_table *table, struct route_node *node, unsigned words);
void route_node_defer(const struct route_table *table, struct route_node *node);
size_t route_node_memory(const struct route_table *table, const struct route_node *node);

/* -------------------------------------------------------------------------------------- route_words.c */

static inline unsigned route_words_bits(uintptr_t words)
{
    return (unsigned)(words & PRUDENCE_ROUTES_BITS_MASK);
}

static inline uint64_t *route_words(uintptr_t words)
{
    return (uint64_t *)(words & ~(uintptr_t)PRUDENCE_ROUTES_BITS_MASK);
}

static inline size_t route_words_bytes(uintptr_t words)
{
    return sizeof(uint64_t) << route_words_bits(words);
}

/* 2^bits words, which are 0; 0: there is no memory. */
uintptr_t route_words_make(const struct route_table *table, unsigned bits);

/* Without the lock. Either may be 0: an array that no reader has seen, and one that was replaced. */
void route_words_let_go(const struct route_table *table, uintptr_t unused, uintptr_t replaced);

/* -------------------------------------------------------------------------------------- route_index.c */

/* The level at which lookups in the trie begin. */
static inline unsigned route_index_level(uintptr_t index)
{
    return (route_words_bits(index) + 5) / 6;
}

/* The word of a node in the index; a value is its own. */
static inline uint64_t route_index_node(const struct route_node *node)
{
    return 0 - (uint64_t)(uintptr_t)node;
}

/* An index without values, for so many prefixes; 0: there is no memory. */
uintptr_t route_index_make(const struct route_table *table, uint64_t prefixes);

/* Under the lock. The word of the key; all words below a prefix that is not longer than the index is wide. */
void route_index_set(const struct route_table *table, route_key key, uint64_t word);
void route_index_fill(uintptr_t index, route_key key, unsigned length, uint64_t word);

/* Behind an update, without the lock: whether there are so many prefixes that the index is to be wider. */
void route_index_follow_count(struct route_table *table);

/* ----------------------------------------------------------------------------------- route_shortcut.c */

#define ROUTE_LEVEL_SHORTCUT 6u

/* With slots for so many edges; 0: there is no memory. */
uintptr_t route_shortcuts_make(const struct route_table *table, uint64_t edges);
void route_shortcuts_follow_count(struct route_table *table);

/*
 * Under the lock, before the same is stored in the trie: below a node of level `above`, this node, of `level`, is there; takes the place
 * of the end of edge `old`; goes.
 */
void route_shortcut_add(struct route_table *table, unsigned above, const struct route_node *node,
                        unsigned level);
void route_shortcut_replace(const struct route_table *table, unsigned above, uint64_t old,
                            const struct route_node *node, unsigned level);
void route_shortcut_remove(struct route_table *table, unsigned above, const struct route_node *node,
                           unsigned level);

#endif /* STRUCTURES_ROUTES_H */
