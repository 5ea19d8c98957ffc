/* SPDX-License-Identifier: MIT */
/* Searching a map (see map_read.c). */
#ifndef TABLES_MAP_READ_H
#define TABLES_MAP_READ_H

#include "tables/map.h"

/* How a search goes on at a link on the way of a key. `flip` is 0 to search above the key, 255 to
 * search below. */
enum map_way {
    MAP_WAY_DOWN, /* follow the key further down */
    MAP_WAY_ALL,  /* all below the link is on the searched side */
    MAP_WAY_NONE, /* nothing is */
};

/* Decides at a link to an object. If `strictly`, the key itself does not count. */
enum map_way map_read_way_at_object(uintptr_t link, const struct map_key *key, unsigned flip,
                                    bool strictly);

/* Decides at a node at the key's place *at, and moves *at on to the byte that decides. */
enum map_way map_read_way_at_prefix(const struct map_node *node, const struct map_key *key,
                                    size_t *at, unsigned flip);

/* Returns the object with this key, which fits the map, or NULL. */
struct prudence_map_node *map_lookup(const struct prudence_map *map, const struct map_key *key);

/* Returns the link to the nearest object on one side of the key, or 0. Unless `strictly`, an object
 * with the key itself is the nearest. */
uintptr_t map_read_seek(const struct prudence_map *map, const struct map_key *key, unsigned flip,
                        bool strictly);

#endif /* TABLES_MAP_READ_H */
