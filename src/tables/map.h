/* SPDX-License-Identifier: MIT */
/*
 * Ordered maps (<prudence/map.h>, ADR 69): a radix tree whose nodes have the size that they need.
 *
 * Invariants, in every state that a reader can see:
 *  - At least one object is below every reachable node. So the last link of a node is never taken
 *    out. Instead the node is unlinked, and with it all nodes above that have no other link
 *    (map_remove.c).
 *  - A node has the same place in keys for life. All keys below share the bytes above the node, and
 *    so the bytes of the prefix.
 *  - A MAP_GONE node stays as it was when it was unlinked until the last reader has ended. A reader
 *    in the node sees the links of that moment, which came after the reader found the node. The
 *    nodes below live on, because the successor links them too.
 *
 * Locks. A writer locks nodes from the top down, in the order of their places in keys. These never
 * change, so no circle of writers can wait for each other. A writer is counted before the first
 * lock, so that fork can wait for it (map_writers.h). Under the lock the writer checks again: a
 * node that is not gone is in the tree, and an unchanged link in that node leads to a node that is
 * not gone. Locks are held for some tens of nanoseconds. The holder does not allocate or defer, and
 * waits only for the next lock.
 *
 * Lifetimes. A writer is also a reader. It enters a section for each round, and leaves the section
 * to allocate and to defer. An update allocates nodes beforehand and defers the unlinked ones
 * afterwards (map_update.h).
 */
#ifndef TABLES_MAP_H
#define TABLES_MAP_H

#include "base/list.h"
#include "tables/entries.h"
#include "tables/map_key.h"
#include "tables/map_node.h"

/* For each group of CPUs: the threads inside an update, and the objects added there less those
 * removed (map_writers.h). */
struct map_writers {
    uint64_t word; /* atomic */
} __attribute__((aligned(CACHE_LINES_APART)));

struct prudence_map {
    bool bytes; /* keys are byte strings; constant, like the fields down to `owner` */
    /* Updates enter sections of the domain. Otherwise the caller is inside one. */
    bool own_sections;
    unsigned writers_mask;
    struct cache_owner owner;
    struct prudence_cache *caches[MAP_KINDS]; /* NULL until needed (own_cache.h) */
    struct entries entries;                   /* all objects of a map of values (map_values.c) */
    size_t allocated;                         /* bytes of this structure */
    struct list link;                         /* protected by tables_lock */

    /* A node of no kind, used for its lock only. The only slot is `root`. */
    struct {
        struct map_node node __attribute__((aligned(CACHE_LINES_APART)));
        uintptr_t root;
    } top;

    struct map_writers writers[];
};

/* Returns the cache of nodes of this kind, or NULL. */
static inline struct prudence_cache *map_cache(struct prudence_map *map, unsigned kind)
{
    return own_cache(&map->caches[kind], &map->owner, map_node_bytes(kind), CACHE_LINE);
}

/* Returns whether the key is of the map's kind. A string without an address never is. */
static inline bool map_key_fits(const struct prudence_map *map, const struct map_key *key)
{
    return likely(map->bytes == (key->bytes != NULL)) &&
           (key->bytes || key->length == sizeof key->number);
}

/* Returns how many bytes of the prefix the key has at its place `from`. */
static inline unsigned map_prefix_common(uint64_t prefix, const struct map_key *key, size_t from)
{
    uint64_t differ = (prefix ^ map_key_window(key, from)) >> 8;
    size_t common = differ ? (size_t)__builtin_clzll(differ) / 8 - 1 : MAP_PREFIX_MOST;

    return (unsigned)min_size(min_size(common, map_prefix_length(prefix)), key->length - from);
}

/*
 * Moves *at past the prefix and returns true, if the key has the whole prefix at its place *at.
 * Most nodes have no prefix: numbers differ soon, and strings that begin alike differ at any byte.
 */
static inline bool map_pass_prefix(uint64_t prefix, const struct map_key *key, size_t *at)
{
    if (likely(!prefix))
        return true;
    if (map_prefix_length(prefix) > key->length - *at ||
        !map_prefix_matches(prefix, map_key_window(key, *at)))
        return false;
    *at += map_prefix_length(prefix);
    return true;
}

/* Returns the byte at a place before the key's end. */
static inline uint8_t map_key_byte(const struct map_key *key, size_t at)
{
    return key->bytes ? key->bytes[at] : (uint8_t)(key->number >> (56 - 8 * at));
}

/*
 * Returns the slot of the key's byte at this place, or NULL. Strings that begin alike lead through
 * many nodes with two links, one after the other. So for strings the first two slots of FOUR are
 * compared one by one: while the processor predicts the comparison, it loads the next node without
 * waiting for the search. (Numbers differ from the first byte on, and predictions would fail.)
 */
static inline uintptr_t *map_slot_of_key(struct map_node *node, const struct map_key *key,
                                         size_t at)
{
    const uint8_t byte = map_key_byte(key, at);

    if (key->bytes && likely(node->kind == MAP_FOUR)) {
        const unsigned used = load_acquire(&node->used); /* slots below it have byte and link */
        const uint64_t bytes = load_relaxed(&map_words(node)[0]);

        if (likely((uint8_t)bytes == byte && used > 0))
            return (uintptr_t *)&map_words(node)[1];
        if (likely((uint8_t)(bytes >> 8) == byte && used > 1))
            return (uintptr_t *)&map_words(node)[2];
    }
    return map_slot(node, byte);
}

/*
 * map.c, for both kinds of maps. map_flags_are_valid reports what is wrong with attributes, on
 * behalf of the public function `what`, and sets errno. map_make makes a map; map_destroy is
 * prudence_map_destroy on behalf of `what`.
 */
bool map_flags_are_valid(const char *what, const char *name, unsigned flags, unsigned reserved);
struct prudence_map *map_make(const char *name, bool bytes, struct prudence_domain *domain);
int map_destroy(const char *what, void *caller, struct prudence_map *map,
                void (*dispose)(struct prudence_map_node *object, void *argument), void *argument);

#endif /* TABLES_MAP_H */
