/* SPDX-License-Identifier: MIT */
/* Smaller nodes after removals (see map_tidy.c). */
#ifndef TABLES_MAP_TIDY_H
#define TABLES_MAP_TIDY_H

#include "tables/map_update.h"

/* Makes the nodes on the way of the key as small as possible, if there is memory. */
void map_tidy(struct prudence_map *map, const struct map_key *key);

/*
 * Tidies a node that lost a link, in the round that took the link out, with nothing locked. `place`
 * had the link to the node. Does nothing if the place has changed, or if there is no spare node.
 * update->untidy then stays, and becomes whether the node above is worth tidying otherwise.
 */
void map_tidy_now(struct map_update *update, const struct map_place *place, struct map_node *node);

/* Returns whether the node, which lost a link, may be worth tidying. */
bool map_tidy_is_wanted(const struct map_node *node);

#endif /* TABLES_MAP_TIDY_H */
