/* SPDX-License-Identifier: MIT */
/*
 * Memory of an update of routes. No thread allocates under the table's lock, because an allocation
 * may wait for readers. So that most updates still take the lock once, the table has a spare node
 * of each size that an update has used: an update takes spares under the lock, and replaces them
 * when it is complete and has released the lock. An update that does not find all spares allocates
 * the missing nodes without the lock, and then searches again.
 *
 * A slot for a spare goes from a node to NULL only under the lock, and from NULL to a node at any
 * time (compare and exchange). So the holder of the lock who finds a node there has it alone.
 */
#include "tables/route_room.h"

static void room_begin(struct route_room *room, const struct route_need *need)
{
    room->need = *need;
    room->fresh = room->end = NULL;
    room->used = 0;
    for (unsigned i = 0; i < need->count; i++)
        room->below[i] = NULL;
}

/* Acquire: this thread may write to the node after the thread that allocated it. */
static bool take_spare(struct route_table *table, unsigned words, struct route_node **node)
{
    struct route_node **spare;

    if (!words)
        return true;
    spare = &table->spares[route_node_size(table, words)];
    *node = load_acquire(spare);
    if (*node)
        store_relaxed(spare, NULL);
    return *node;
}

bool route_room_take(struct route_table *table, struct route_room *room,
                     const struct route_need *need)
{
    bool is_complete;

    room_begin(room, need);
    is_complete = take_spare(table, need->words, &room->fresh) &&
                  take_spare(table, need->end_words, &room->end);
    for (unsigned i = 0; is_complete && i < need->count; i++)
        is_complete = take_spare(table, ROUTE_SMALLEST, &room->below[i]);
    return is_complete;
}

/* Makes the node if it is needed and not there. */
static bool make_one(struct route_table *table, unsigned words, struct route_node **node)
{
    if (words && !*node)
        *node = route_node_make(table, words);
    return !words || *node;
}

bool route_room_complete(struct route_table *table, struct route_room *room)
{
    bool is_made = make_one(table, room->need.words, &room->fresh) &&
                   make_one(table, room->need.end_words, &room->end);

    for (unsigned i = 0; is_made && i < room->need.count; i++)
        is_made = make_one(table, ROUTE_SMALLEST, &room->below[i]);
    if (!is_made)
        route_room_free(table, room);
    return is_made;
}

bool route_room_make(struct route_table *table, struct route_room *room,
                     const struct route_need *need)
{
    room_begin(room, need);
    return route_room_complete(table, room);
}

static void free_one(const struct route_table *table, struct route_node *node, unsigned words)
{
    if (node)
        route_node_free(table, node, words);
}

void route_room_free(const struct route_table *table, const struct route_room *room)
{
    free_one(table, room->fresh, room->need.words);
    free_one(table, room->end, room->need.end_words);
    for (unsigned i = 0; i < room->need.count; i++)
        free_one(table, room->below[i], ROUTE_SMALLEST);
}

/* Returns 0 for no words, or else a number for each size. */
static unsigned size_of(const struct route_table *table, unsigned words)
{
    return words ? 1 + route_node_size(table, words) : 0;
}

bool route_room_fits(const struct route_table *table, const struct route_room *room,
                     const struct route_need *need)
{
    return room->need.count == need->count &&
           size_of(table, room->need.words) == size_of(table, need->words) &&
           size_of(table, room->need.end_words) == size_of(table, need->end_words);
}

/* Release: see take_spare. Without memory the slot stays empty. */
static void leave_spare(struct route_table *table, unsigned words)
{
    struct route_node **spare, *none = NULL, *node;

    if (!words)
        return;
    spare = &table->spares[route_node_size(table, words)];
    if (load_relaxed(spare))
        return;
    node = route_node_make(table, words);
    if (node &&
        !__atomic_compare_exchange_n(spare, &none, node, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        route_node_free(table, node, words);
}

void route_room_restock(struct route_table *table, const struct route_room *room)
{
    leave_spare(table, room->need.words);
    leave_spare(table, room->need.end_words);
    if (room->need.count)
        leave_spare(table, ROUTE_SMALLEST);
}

size_t route_room_spare_bytes(const struct route_table *table)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < ROUTE_NODE_SIZES; i++)
        bytes += load_relaxed(&table->spares[i]) ? table->sizes[i] : 0;
    return bytes;
}

void route_room_free_spares(struct route_table *table)
{
    for (unsigned words = 1; words <= ROUTE_NODE_WORDS; words++) {
        struct route_node **spare = &table->spares[route_node_size(table, words)];

        free_one(table, *spare, words);
        *spare = NULL;
    }
}
