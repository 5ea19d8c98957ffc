/* SPDX-License-Identifier: MIT */
/* Adding to a map (see map_add.c). */
#ifndef STRUCTURES_MAP_ADD_H
#define STRUCTURES_MAP_ADD_H

#include "structures/map.h"

/*
 * Adds the object, which is the caller's or an entry. With `replacing`, it takes the place of an
 * object with the same key. *there is the object that had the key, or NULL. Returns 0; EEXIST,
 * unless `replacing`, or if the object that has the key is this one; or ENOMEM.
 */
int map_add(struct prudence_map *map, struct prudence_map_node *node, bool replacing,
            struct prudence_map_node **there);

#endif /* STRUCTURES_MAP_ADD_H */
