/* SPDX-License-Identifier: MIT */
/* Areas of the index of a table of routes (see route_area.c). */
#ifndef TABLES_ROUTE_AREA_H
#define TABLES_ROUTE_AREA_H

#include "tables/route_index.h"

#define ROUTE_AREA_BEFORE   (PRUDENCE_ROUTES_AREA_END - PRUDENCE_ROUTES_AREA_BITS)
#define ROUTE_AREA_PREFIXES 8192u /* a table with as many has no areas */
#define ROUTE_AREAS_MOST    32u   /* of a table: 1 MiB */
#define ROUTE_AREA_WORDS    16u /* a node with as many, of the last level in an area, asks for it */

/* Returns whether a word of an index or an area is that of an area. */
static inline bool route_is_area(uint64_t word)
{
    return word & PRUDENCE_ROUTES_NODE && prudence_routes_is_area_(word);
}

static inline struct route_span route_area_span(uint64_t word)
{
    return (struct route_span){(uint64_t *)(uintptr_t)(1 - word), ROUTE_AREA_BEFORE,
                               PRUDENCE_ROUTES_AREA_BITS};
}

/* Returns, under the lock, whether a node of this level and number of words asks for an area that
 * is not there. */
bool route_area_is_wanted(const struct route_table *table, route_key key, unsigned level,
                          unsigned words);

/* Without the lock, after an update: makes the area of the key, if there is memory. */
void route_area_add(struct route_table *table, route_key key);

/* Returns the bytes of the table's areas. */
size_t route_areas_bytes(const struct route_table *table);

#endif /* TABLES_ROUTE_AREA_H */
