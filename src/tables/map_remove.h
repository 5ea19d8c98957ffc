/* SPDX-License-Identifier: MIT */
/* Removing from a map, and replacing (see map_remove.c). */
#ifndef TABLES_MAP_REMOVE_H
#define TABLES_MAP_REMOVE_H

#include "tables/map.h"

/* Removes the object with this key, if `object` is 0 or the link to it. Returns it, or NULL. */
struct prudence_map_node *map_remove(struct prudence_map *map, const struct map_key *key,
                                     uintptr_t object);
/* Replaces an object by another one with the same key. Returns 0 or ENOENT. */
int map_replace(struct prudence_map *map, const struct map_key *key, struct prudence_map_node *old,
                struct prudence_map_node *fresh);

#endif /* TABLES_MAP_REMOVE_H */
