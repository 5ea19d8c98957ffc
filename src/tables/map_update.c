/* SPDX-License-Identifier: MIT */
/* Rounds of updates of ordered maps, locks, and spare nodes (map_update.h). */
#include "tables/map_update.h"

#include <errno.h>

#include "tables/contention.h"
#include "tables/map_writers.h"

/* ---------------------------------------------------------------------------------------- locks */

bool map_lock(struct map_node *node)
{
    unsigned tries = 0;

    for (;;) {
        uint32_t state = load_relaxed(&node->lock);

        /* Acquire: this thread sees all that the last holder did. */
        if (state == MAP_FREE && __atomic_compare_exchange_n(&node->lock, &state, MAP_LOCKED, false,
                                                             __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
        if (state == MAP_GONE)
            return false;
        contention_pause(&tries);
    }
}

void map_unlock(struct map_node *node)
{
    /* Release: the next holder sees all that this one did. */
    store_release(&node->lock, (uint32_t)MAP_FREE);
}

bool map_update_lock_place(const struct map_place *place, uintptr_t link)
{
    if (!map_lock(place->node))
        return false;
    if (likely(load_relaxed(place->slot) == link))
        return true;
    map_unlock(place->node);
    return false;
}

bool map_update_lock_both(const struct map_place *place, struct map_node *node)
{
    return map_update_lock_place(place, (uintptr_t)node) && map_lock(node);
}

void map_update_unlock_both(const struct map_place *place, struct map_node *node)
{
    map_unlock(node);
    map_unlock(place->node);
}

void map_update_mark_gone(struct map_node *node)
{
    store_release(&node->lock, (uint32_t)MAP_GONE);
}

void map_update_put_instead(struct map_update *update, const struct map_place *place,
                            struct map_node *node, uintptr_t link)
{
    /* Release: a reader that takes this link sees the content of the nodes and objects below. */
    store_release(place->slot, link);
    update->gone[update->gone_count++] = node;
    map_update_mark_gone(node);
    map_unlock(place->node);
}

/* ---------------------------------------------------------------------------------- spare nodes */

bool map_update_want(struct map_update *update, unsigned kind, size_t count)
{
    update->wanted[kind] = count;
    return likely(update->spares[kind] >= count);
}

struct map_node *map_update_take_spare(struct map_update *update, unsigned kind, uint64_t prefix)
{
    struct map_node *node = update->spare[kind];

    update->spare[kind] = (struct map_node *)node->end;
    update->spares[kind]--;
    map_node_init(node, kind, prefix);
    return node;
}

static bool allocate(struct map_update *update)
{
    update->allocated = true;
    for (unsigned kind = 0; kind < MAP_KINDS; kind++) {
        for (; update->spares[kind] < update->wanted[kind]; update->spares[kind]++) {
            struct prudence_cache *cache = map_cache(update->map, kind);
            struct map_node *node = cache ? prudence_cache_alloc(cache) : NULL;

            if (!node)
                return false;
            node->end = (uintptr_t)update->spare[kind];
            update->spare[kind] = node;
        }
        update->wanted[kind] = 0;
    }
    return true;
}

void map_update_provide(struct map_update *update, unsigned kind)
{
    map_update_want(update, kind, 1);
    (void)allocate(update);
}

static void free_spares(struct map_update *update)
{
    for (unsigned kind = 0; kind < MAP_KINDS; kind++) {
        while (unlikely(update->spare[kind] != NULL)) {
            struct map_node *node = update->spare[kind];

            update->spare[kind] = (struct map_node *)node->end;
            prudence_cache_free(update->map->caches[kind], node);
        }
    }
}

/* --------------------------------------------------------------------------------------- rounds */

static void defer(const struct map_update *update, struct map_node *node)
{
    prudence_cache_free_deferred(update->map->caches[node->kind], node);
}

/* Defers the unlinked nodes, outside of the section and with no lock held, because a deferral may
 * wait for readers. */
static void defer_gone(const struct map_update *update)
{
    struct map_node *node = update->gone_line;

    for (unsigned i = 0; i < update->gone_count; i++)
        defer(update, update->gone[i]);
    while (node) {
        unsigned byte;
        uintptr_t next = map_node_only_link(node, &byte);

        defer(update, node);
        node = map_is_object(next) ? NULL : map_inner(next);
    }
}

/* Takes a round. If it is done, counts `objects`, less one if an object was replaced. */
static enum round map_update_take_round(struct map_update *update,
                                        enum round (*round)(struct map_update *update),
                                        int64_t objects)
{
    struct map_writers *writers;
    enum round result;

    map_section_enter(update->map);
    writers = map_writers_enter(update->map);
    result = round(update);
    map_writers_leave(writers,
                      result == ROUND_DONE ? objects - (update->replacing && update->there) : 0);
    map_section_leave(update->map);
    return result;
}

static int error_of(enum round round)
{
    static const int errors[] = {
        [ROUND_DONE] = 0,        [ROUND_AGAIN] = EAGAIN,  [ROUND_MEMORY] = ENOMEM,
        [ROUND_EXISTS] = EEXIST, [ROUND_ABSENT] = ENOENT,
    };

    return errors[round];
}

int map_update(struct map_update *update, enum round (*round)(struct map_update *update),
               int64_t objects)
{
    enum round result;

    do {
        result = map_update_take_round(update, round, objects);
    } while (result == ROUND_AGAIN || (result == ROUND_MEMORY && allocate(update)));
    defer_gone(update);
    if (unlikely(update->allocated))
        free_spares(update);
    return error_of(result);
}
