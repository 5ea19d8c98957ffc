/* SPDX-License-Identifier: MIT */
/*
 * Routes (<prudence/routes.h>, ADR 70): a trie that takes 6 bits of an address at each level, and
 * an index into the trie.
 *
 * Levels. A node of level 0 would stand for the address bits -5 to 0, one of level 1 for bits 1 to
 * 6, and so on, so that the lengths at which real routes are frequent (24, 48) are the longest of
 * their nodes. The root, of level 0, has the prefix of length 0 and at most two children. A prefix
 * belongs in a node of level (length + 5) / 6.
 *
 * Nodes. A node holds its prefixes, its children, and `above`, the value of the longest prefix that
 * matches and is shorter than the node's own. So a lookup goes down to the last node of its address
 * and gets the answer from that one node.
 *
 * Index. The index has a word for each value of the first `bits` bits of an address, which are the
 * bits above one of the levels. The word is the node of that level or, if there is none, the value
 * of the longest prefix that matches. Lookups begin there. Writers, get and walks use the trie
 * above that level, which the index only repeats. In a small table of IPv4, a word may lead to an
 * area (route_area.c), whose words are for more bits. All that is said of words of the index is
 * true of those.
 *
 * IPv6. A node may hang several levels below another one (route_edge), and shortcuts lead to some
 * nodes (route_shortcut.c, ADR 70). An address that leaves an edge in the middle gets its answer
 * from `above` of the node at the end. While a node is in the table, an address that leaves the
 * edge to this node goes on leaving it, because an update that cuts the edge replaces the node.
 *
 * Invariants, under the lock, between updates:
 *  - `above` of a node is the value that a lookup would find without the node.
 *  - Every node but the root has a prefix or a child. Where edges may skip the node's level, the
 *    node has a prefix or two children.
 *  - Each word of the index agrees with the trie.
 *
 * Updates. The bitmaps of a node, and so the places of its words, never change. To add or remove a
 * prefix, an update makes another node and stores its address in the node above, and in the index
 * if the node is of that level. New nodes further below hang on that node. The update also stores
 * to `above` of nodes and to words of the index that inherit their answer from the prefix.
 * Replacing a value stores to the same heirs and to the word of the prefix. For any one address,
 * exactly one of the stores to the index and to the nodes from its level on changes the answer.
 *
 * Order. Nodes above the level of the index repeat what its words say. Only get and walks read
 * them, and slow lookups: those that loaded the index, or a word of it, before a wider index or an
 * area was published. An update stores to these nodes after the words, for any one address: to
 * `above` of a node when all below has the answer (hand_down), then to the place of the node that
 * it makes, or to the word of the prefix. For one address, one of the stores to nodes changes the
 * answer of a slow lookup. When that lookup has the answer after the update, all that begin then
 * have it, too. Until then it may have the answer before the update. That was right when the lookup
 * began, because arrays are published under the lock, so before the update.
 *
 * A reader's answer was right at a moment during its lookup. Whatever it loads a word from (index,
 * node) was part of the table when the reader loaded the address, by induction from the first word.
 * If it still is, the word is current, or that of a slow lookup from before an update that is under
 * way. If it was replaced since, no update stores to it any more, so the word is from the moment of
 * the replacement, which was during the lookup. So the last word, the answer, was right at a moment
 * after the moment of the word before.
 *
 * Locks. `lock` serializes updates. No thread holds it while allocating memory or deferring a node,
 * because both may wait for readers. An update first finds out how much memory it needs. It takes
 * spare nodes (route_room.c), or allocates without the lock and checks again. Fork takes the lock
 * (fork.c), so a child never has half an update.
 */
#ifndef TABLES_ROUTES_H
#define TABLES_ROUTES_H

#include <prudence/routes.h>

#include "base/atomic.h"
#include "base/list.h"
#include "os/os.h"
#include "race_detector.h"
#include "tables/own_cache.h"
#include "tables/route_node.h"

struct route_table {
    struct prudence_routes public; /* written under the lock */
    struct cache_owner owner;
    struct prudence_cache *caches[ROUTE_NODE_SIZES]; /* NULL until needed (own_cache.h) */
    struct prudence_cache *indexes;                  /* likewise */
    unsigned firsts; /* arrays in `first` that were used; constant, like the next five */
    bool may_have_areas;
    unsigned length_most;
    unsigned node_front;                           /* bytes before a node: the path, or 0 */
    const unsigned short *sizes;                   /* of nodes, in bytes */
    unsigned char size_of_words[ROUTE_NODE_WORDS]; /* [n]: number of the size for n + 1 words */

    struct os_lock lock __attribute__((aligned(CACHE_LINES_APART)));
    struct route_node *root;    /* protected, like the rest, by the lock; read by all */
    uint64_t prefixes;          /* read by all */
    uint64_t nodes, node_bytes; /* in the trie */
    unsigned areas;             /* of the index (route_area.c) */
    uint64_t edges_across;      /* edges across level 6, which have shortcuts; read by all */
    uint64_t refused;
    struct route_node *spares[ROUTE_NODE_SIZES]; /* for the next updates (route_room.c), or NULL */
    struct list link; /* in route_tables, for fork; protected by tables_lock */

    /* The first index and, for IPv6, the first shortcuts (route_words.c). */
    uint64_t first[] __attribute__((aligned(CACHE_LINE)));
};

PRUDENCE_API struct prudence_routes *
prudence_routes2_create(const char *name, const struct prudence_routes_attr *given);

static inline struct route_table *route_table_of(const struct prudence_routes *public)
{
    return (struct route_table *)public;
}

/* Inform ThreadSanitizer that a value is about to be in the table, or was found there, before the
 * program gets the value. (The lock covers values that updates find.) */
static inline void route_tell_added(const struct route_table *table, uintptr_t value)
{
    tell_release((const void *)prudence_routes_mark_(&table->public, value));
}

static inline uintptr_t route_found(const struct route_table *table, uintptr_t value)
{
    tell_acquire((const void *)prudence_routes_mark_(&table->public, value));
    return value;
}

/* An address of either family, left-aligned. */
__extension__ typedef unsigned __int128 route_key;

#define ROUTE_KEY_BITS 128u
#define ROUTE_LEVELS   23u /* for 128 bits, and 5 before them */

static inline unsigned route_level_of(unsigned length)
{
    return (length + 5) / 6;
}

/*
 * In a trie of IPv6, most nodes would have one child and nothing else. Those nodes are skipped,
 * and the node below hangs on the node above (an edge, see route_node.h). Two kinds of levels still
 * have a node on every way: all levels of indexes, whose words lead to nodes of one level, and one
 * in the middle, so that no edge has more bits than fit in a word.
 */
#define ROUTE_LEVEL_INDEXED 4u /* the widest index ends before this level */
#define ROUTE_LEVEL_MIDDLE  11u

/* Returns whether a node of this level stays when it has one child and nothing else. */
static inline bool route_is_always_there(const struct route_table *table, unsigned level)
{
    return !table->node_front || level <= ROUTE_LEVEL_INDEXED || level == ROUTE_LEVEL_MIDDLE;
}

/* Returns the next level on the way from one to another, if nothing else is there. */
static inline unsigned route_level_below(const struct route_table *table, unsigned level,
                                         unsigned last)
{
    if (route_is_always_there(table, level + 1))
        return level + 1;
    return level < ROUTE_LEVEL_MIDDLE && last > ROUTE_LEVEL_MIDDLE ? ROUTE_LEVEL_MIDDLE : last;
}

/* Returns the number of address bits before a level other than 0. */
static inline unsigned route_bits_before(unsigned level)
{
    return 6 * level - 5;
}

/* Returns the 6 bits of an address that a node of this level takes, zeros after the last bit and
 * before the first. */
static inline unsigned route_slot(route_key key, unsigned level)
{
    const unsigned right = ROUTE_KEY_BITS - 1;

    return (unsigned)(6 * level <= right ? key >> (right - 6 * level)
                                         : key << (6 * level - right)) &
           63;
}

/* Returns the key with these 6 bits at the level, followed by zeros. */
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

/* Returns the path to the node of this level, not 0, that the key leads to. */
static inline uint64_t route_path_of(route_key key, unsigned level)
{
    return (uint64_t)(key >> (ROUTE_KEY_BITS - route_bits_before(level)));
}

/* Returns the bit of a prefix in the node. */
static inline unsigned route_bit(route_key key, unsigned length)
{
    const unsigned level = route_level_of(length);

    return (64 + route_slot(key, level)) >> (6 * level + 1 - length);
}

/* Returns whether the key leads along the edge to the end, of this level and not below `last`. */
static inline bool route_is_on_the_way(uint64_t edge, unsigned level, route_key key, unsigned last)
{
    if (likely(!route_edge_skips(edge)))
        return true;
    return level <= last && *route_path(route_edge_node(edge)) == route_path_of(key, level);
}

/* Returns the key that leads to the edge, with the bits of the edge appended. */
static inline route_key route_key_along(route_key key, unsigned level, uint64_t edge)
{
    const unsigned end = level + 1 + route_edge_levels(edge);

    if (!route_edge_skips(edge))
        return key;
    return key | (route_key)*route_path(route_edge_node(edge))
                     << (ROUTE_KEY_BITS - route_bits_before(end));
}

/* Converts a prefix to a key. Returns false if it is not a prefix of this table. */
bool route_prefix_key(const struct route_table *table, const struct prudence_routes_prefix *prefix,
                      route_key *key);
void route_key_prefix(const struct route_table *table, route_key key, unsigned length,
                      struct prudence_routes_prefix *prefix);

/* Sets the constants that depend on the family. */
void route_table_shape(struct route_table *table, enum prudence_routes_family family);

/* Returns the number of the size of nodes with this number of words, at least 1. */
static inline unsigned route_node_size(const struct route_table *table, unsigned words)
{
    return table->size_of_words[words - 1];
}

/* Allocates a node of this number of words, or returns NULL. */
struct route_node *route_node_make(struct route_table *table, unsigned words);
void route_node_free(const struct route_table *table, struct route_node *node, unsigned words);
void route_node_defer(const struct route_table *table, struct route_node *node);
size_t route_node_memory(const struct route_table *table, const struct route_node *node);

#endif /* TABLES_ROUTES_H */
