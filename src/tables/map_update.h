/* SPDX-License-Identifier: MIT */
/*
 * An update of an ordered map goes in rounds. A round is a section in which the thread follows its
 * key, locks the nodes that it wants to change, checks that they are as it found them, and changes
 * them. If they are not, the thread begins again. If it needs a node, it leaves the section,
 * allocates, and begins again. Unlinked nodes are deferred after the last round.
 */
#ifndef TABLES_MAP_UPDATE_H
#define TABLES_MAP_UPDATE_H

#include <prudence/rcu.h>

#include "tables/map.h"

enum round {
    ROUND_DONE,
    ROUND_AGAIN,  /* another update was first */
    ROUND_MEMORY, /* `wanted` says which nodes to allocate */
    ROUND_EXISTS,
    ROUND_ABSENT,
};

#define MAP_GONE_MOST 2u

struct map_update {
    struct prudence_map *map;
    const struct map_key *key;
    uintptr_t object; /* link to the object that is added or meant; 0: any */
    uintptr_t fresh;  /* link to the object that takes its place */
    uintptr_t there;  /* link that was found for the key; 0: none */
    bool replacing;   /* an object with the key is replaced */
    bool untidy;      /* the node that lost a link may be tidied */

    bool allocated; /* spare nodes may remain */
    unsigned gone_count;
    struct map_node *gone[MAP_GONE_MOST]; /* unlinked one by one */
    struct map_node *gone_line; /* unlinked together: each is the only link of the one before */
    size_t wanted[MAP_KINDS];   /* numbers of nodes needed */
    size_t spares[MAP_KINDS];   /* lengths of ... */
    struct map_node *spare[MAP_KINDS]; /* ... these lists, linked by `end` */
};

/* A place that holds a link, in this node or in the top. */
struct map_place {
    struct map_node *node;
    uintptr_t *slot;
};

/*
 * Takes rounds while they return ROUND_AGAIN, or ROUND_MEMORY and there is memory. Returns 0,
 * ENOMEM, EEXIST or ENOENT. With 0, adds `objects` to the number of objects, less one if the update
 * replaced one.
 */
int map_update(struct map_update *update, enum round (*round)(struct map_update *update),
               int64_t objects);

/* Returns whether `count` spare nodes of this kind are there. If not, the next allocation makes
 * them. */
bool map_update_want(struct map_update *update, unsigned kind, size_t count);

/* Allocates a spare node before the first round, if there is memory. Without it, a round that wants
 * one has been for nothing. */
void map_update_provide(struct map_update *update, unsigned kind);

/* Takes a spare node, which is there, and gives it this prefix and nothing else. */
struct map_node *map_update_take_spare(struct map_update *update, unsigned kind, uint64_t prefix);

/* Returns false if the node is gone. */
bool map_lock(struct map_node *node);
void map_unlock(struct map_node *node);

/* Locks the place. Returns false if the node is gone or the slot has another link. */
bool map_update_lock_place(const struct map_place *place, uintptr_t link);

/* Also locks the node that the link leads to, which is not gone then. */
bool map_update_lock_both(const struct map_place *place, struct map_node *node);
void map_update_unlock_both(const struct map_place *place, struct map_node *node);

/* Replaces the link to `node` by `link`, marks `node` gone, and unlocks the place. The caller holds
 * both locks. */
void map_update_put_instead(struct map_update *update, const struct map_place *place,
                            struct map_node *node, uintptr_t link);

/* Marks an unlinked node as gone, under the lock. The update defers the node. */
void map_update_mark_gone(struct map_node *node);

static inline struct map_place map_top(struct prudence_map *map)
{
    return (struct map_place){.node = &map->top.node, .slot = &map->top.root};
}

static inline bool map_is_top(const struct prudence_map *map, const struct map_node *node)
{
    return node == &map->top.node;
}

/* Enter and leave a section, unless the domain's own rules put the thread inside one. */
static inline void map_section_enter(const struct prudence_map *map)
{
    if (likely(map->own_sections))
        prudence_domain_read_lock(map->owner.domain);
}

static inline void map_section_leave(const struct prudence_map *map)
{
    if (likely(map->own_sections))
        prudence_domain_read_unlock(map->owner.domain);
}

#endif /* TABLES_MAP_UPDATE_H */
