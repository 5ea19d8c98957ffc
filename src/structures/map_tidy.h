/* SPDX-License-Identifier: MIT */
/* Smaller nodes after removals (see map_tidy.c). */
#ifndef STRUCTURES_MAP_TIDY_H
#define STRUCTURES_MAP_TIDY_H

#include "structures/map.h"

/* Makes the nodes on the way of the key as small as possible, if there is memory. */
void map_tidy(struct prudence_map *map, const struct map_key *key);

/* Returns whether the node, which lost a link, may be worth tidying. */
bool map_tidy_is_wanted(const struct map_node *node);

#endif /* STRUCTURES_MAP_TIDY_H */
