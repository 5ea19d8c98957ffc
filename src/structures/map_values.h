/* SPDX-License-Identifier: MIT */
/*
 * Entries of maps of values (<prudence/map_values.h>, ADR 79): objects that the map makes, each with a value and a copy of its key.
 * To all else in the map they are objects like any other: a value is changed by another entry that takes the place of the first.
 */
#ifndef STRUCTURES_MAP_VALUES_H
#define STRUCTURES_MAP_VALUES_H

#include "structures/map.h"

/* Their caches. False: there is no memory; what was made is destroyed by entries_destroy. */
bool map_entries_make(struct prudence_map *map, const char *name, struct prudence_domain *domain);

/* Of an entry that no reader can see. */
void map_entry_free(struct prudence_map *map, struct prudence_map_node *node);

#endif /* STRUCTURES_MAP_VALUES_H */
