/* SPDX-License-Identifier: MIT */
/* Memory of an update of routes (see route_room.c). */
#ifndef TABLES_ROUTE_ROOM_H
#define TABLES_ROUTE_ROOM_H

#include "tables/routes.h"

#define ROUTE_SMALLEST 2u /* number of words: `above`, and a prefix or a child */

/* What an update needs. */
struct route_need {
    unsigned words;     /* words of `fresh`; 0: not needed */
    unsigned end_words; /* words of `end`, the node at the end of an edge that is cut; 0: none is */
    unsigned count;     /* nodes in `below`, each with one prefix or one child */
};

/* What an update has. NULL: not there, or not needed. */
struct route_room {
    struct route_need need;
    struct route_node *fresh, *end, *below[ROUTE_LEVELS];
    unsigned used; /* nodes of `below` that the update has put into the trie */
};

/* Under the lock: takes spare nodes. Returns whether the room is complete. */
bool route_room_take(struct route_table *table, struct route_room *room,
                     const struct route_need *need);

/* Without the lock: allocates all nodes, or those that route_room_take did not find. With false,
 * memory is lacking, and the room is empty. */
bool route_room_make(struct route_table *table, struct route_room *room,
                     const struct route_need *need);
bool route_room_complete(struct route_table *table, struct route_room *room);
void route_room_free(const struct route_table *table, const struct route_room *room);

/* Returns whether a complete room has nodes of the sizes that are needed now. */
bool route_room_fits(const struct route_table *table, const struct route_room *room,
                     const struct route_need *need);

/* Without the lock, after an update: allocates spare nodes of the sizes that the update used. */
void route_room_restock(struct route_table *table, const struct route_room *room);

/* Return the bytes of the spare nodes; free them when no thread uses the table any more. */
size_t route_room_spare_bytes(const struct route_table *table);
void route_room_free_spares(struct route_table *table);

#endif /* TABLES_ROUTE_ROOM_H */
