/* SPDX-License-Identifier: MIT */
/* Adding to a map (see map_add.c). */
#ifndef TABLES_MAP_ADD_H
#define TABLES_MAP_ADD_H

#include "tables/map.h"

/*
 * Adds the object, which is the caller's or an entry. With `replacing`, it takes the place of an
 * object with the same key. *there is the object that had the key, or NULL. Returns 0; EEXIST,
 * unless `replacing`, or if the object that has the key is this one; or ENOMEM.
 */
int map_add(struct prudence_map *map, struct prudence_map_node *node, bool replacing,
            struct prudence_map_node **there);

#endif /* TABLES_MAP_ADD_H */
