/* SPDX-License-Identifier: MIT */
/*
 * Entries of maps of values (<prudence/map_values.h>, ADR 69): objects that the map allocates, each
 * with a value and a copy of the key. The rest of the map treats entries like any other object. An
 * update changes a value by putting another entry in the place of the first.
 */
#ifndef STRUCTURES_MAP_VALUES_H
#define STRUCTURES_MAP_VALUES_H

#include "structures/map.h"

/* Creates the caches of entries. Returns false if there is no memory; entries_destroy then destroys
 * those that were made. */
bool map_entries_make(struct prudence_map *map, const char *name, struct prudence_domain *domain);

/* Frees an entry that no reader can see. */
void map_entry_free(struct prudence_map *map, struct prudence_map_node *node);

#endif /* STRUCTURES_MAP_VALUES_H */
