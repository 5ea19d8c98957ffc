/* SPDX-License-Identifier: MIT */
/* Shortcuts of IPv6 (see route_shortcut.c). */
#ifndef TABLES_ROUTE_SHORTCUT_H
#define TABLES_ROUTE_SHORTCUT_H

#include "tables/routes.h"

#define ROUTE_LEVEL_SHORTCUT 6u

/* Makes an array with slots for this number of edges, or returns 0. */
uintptr_t route_shortcuts_make(struct route_table *table, uint64_t edges);
void route_shortcuts_follow_count(struct route_table *table);

/*
 * Update the shortcuts, under the lock, before the same change is stored in the trie. Below a node
 * of level `above`, a node of `level` is added, takes the place of the end of edge `old`, or is
 * removed.
 */
void route_shortcut_add(struct route_table *table, unsigned above, const struct route_node *node,
                        unsigned level);
void route_shortcut_replace(const struct route_table *table, unsigned above, uint64_t old,
                            const struct route_node *node, unsigned level);
void route_shortcut_remove(struct route_table *table, unsigned above, const struct route_node *node,
                           unsigned level);

#endif /* TABLES_ROUTE_SHORTCUT_H */
