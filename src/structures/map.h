/* SPDX-License-Identifier: MIT */
/*
 * Ordered maps inside (<prudence/map.h>, ADR 69): a radix tree whose nodes are of the size that they need.
 *
 * Invariants, in every state that a reader can see:
 *  - Below a node that can be reached there is at least one object. So the last link of a node is never taken away: its node is
 *    unlinked, and with it all nodes above that have no other link (map_remove.c).
 *  - A node is at the same place of keys as long as it lives: the bytes above it, and so those of its prefix, are the same for all
 *    keys below it.
 *  - A node that is MAP_GONE stays as it was when it was unlinked, until its readers have left. So a reader in it sees what was
 *    below it at that moment, which was after the reader found it; the nodes below, which its successor has as well, go on.
 *
 * Locks: a writer locks nodes from the top down, so in the order of their places in keys, which never change: there is
 * no circle. Before the first lock it is counted, so that fork can wait for it (map_writers.h). Under the lock it looks again: a node that is not gone is in the tree, and a link in it that is as it was found
 * leads to a node that is not gone. Locks are held for some tens of nanoseconds; nothing is allocated, deferred or waited for.
 *
 * Lifetimes: writers are readers too, in a section of their own, which they leave to allocate and to defer. What an update
 * needs is allocated before, what it unlinked is deferred behind it (map_update.h).
 */
#ifndef STRUCTURES_MAP_H
#define STRUCTURES_MAP_H

#include "base/list.h"
#include "structures/entries.h"
#include "structures/map_key.h"
#include "structures/map_node.h"

struct prudence_cache;

/* Of some CPUs each: threads inside an update, and the objects that were added less those removed there (map_writers.h). */
struct map_writers {
    uint64_t word; /* atomic */
} __attribute__((aligned(CACHE_LINES_APART)));

struct prudence_map {
    bool bytes;  /* keys are byte strings; constant, as is what follows */
    bool values; /* objects are entries of the map (map_values.h) */
    bool
        own_sections; /* the domain has sections, which updates enter; otherwise the caller is inside one */
    unsigned writers_mask;
    struct prudence_domain *domain;
    struct prudence_cache *caches[MAP_KINDS];
    struct entries entries; /* of a map of values */
    size_t allocated;       /* bytes of this */
    struct list link;       /* under tables_lock */

    /* A node whose only slot is `root`, of no kind: it is locked, and that is all. */
    struct {
        struct map_node node __attribute__((aligned(CACHE_LINES_APART)));
        uintptr_t root;
    } top;

    struct map_writers writers[];
};

/* How a search goes on at a link on the way of a key; `flip` 0: for a key above, 255: below. */
enum map_way {
    MAP_WAY_DOWN, /* further on the way of the key */
    MAP_WAY_ALL,  /* all that is below the link is on the side that is searched */
    MAP_WAY_NONE, /* nothing is */
};

/* map_read.c: at a link to an object; `strictly`: the key itself does not count. */
enum map_way map_way_at_object(uintptr_t link, const struct map_key *key, unsigned flip,
                               bool strictly);

/* At a node at the key's place *at, which moves on to the byte that decides. */
enum map_way map_way_at_prefix(const struct map_node *node, const struct map_key *key, size_t *at,
                               unsigned flip);

/* The object with this key, which fits the map; NULL: there is none. */
struct prudence_map_node *map_lookup(const struct prudence_map *map, const struct map_key *key);

/* The link to the nearest object on one side of the key, or with it unless `strictly`; 0: there is none. */
uintptr_t map_seek(const struct prudence_map *map, const struct map_key *key, unsigned flip,
                   bool strictly);

/* Not: a key of the other kind, or a string without an address. */
static inline bool map_key_fits(const struct prudence_map *map, const struct map_key *key)
{
    return likely(map->bytes == (key->bytes != NULL)) &&
           (key->bytes || key->length == sizeof key->number);
}

/* How many of the prefix's bytes the key has at its place `from`. */
static inline unsigned map_prefix_common(uint64_t prefix, const struct map_key *key, size_t from)
{
    uint64_t differ = (prefix ^ map_key_window(key, from)) >> 8;
    size_t common = differ ? (size_t)__builtin_clzll(differ) / 8 - 1 : MAP_PREFIX_MOST;

    return (unsigned)min_size(min_size(common, map_prefix_length(prefix)), key->length - from);
}

/* The byte at a place before the key's end. */
static inline uint8_t map_key_byte(const struct map_key *key, size_t at)
{
    return key->bytes ? key->bytes[at] : (uint8_t)(key->number >> (56 - 8 * at));
}

#endif /* STRUCTURES_MAP_H */
