/* SPDX-License-Identifier: MIT */
/*
 * How an update of an ordered map goes: in rounds. A round is a section, in which a thread goes the way of its key, locks what it
 * wants to change, looks whether that is as it found it, and changes it. If it is not, it begins again; if it needs a
 * node, it leaves the section, allocates, and begins again. Nodes that were unlinked are deferred after the last round.
 */
#ifndef STRUCTURES_MAP_UPDATE_H
#define STRUCTURES_MAP_UPDATE_H

#include <prudence/rcu.h>

#include "structures/map.h"

enum round {
    ROUND_DONE,
    ROUND_AGAIN,  /* another update was first */
    ROUND_MEMORY, /* `wanted` says which nodes it needs */
    ROUND_EXISTS,
    ROUND_ABSENT,
};

#define MAP_GONE_MOST 2u

struct map_update {
    struct prudence_map *map;
    const struct map_key *key;
    uintptr_t object; /* the link to the object that is added, or that is meant; 0: any */
    uintptr_t fresh;  /* to the one that takes its place */
    uintptr_t there;  /* the link that was found for the key; 0: none */
    bool replacing;   /* what is there */
    bool untidy;      /* the node that lost a link */

    bool allocated; /* there may be spare nodes */
    unsigned gone_count;
    struct map_node *gone[MAP_GONE_MOST]; /* unlinked, one by one */
    struct map_node *gone_line;           /* unlinked, each the only link of the one before */
    size_t wanted[MAP_KINDS];             /* nodes */
    size_t spares[MAP_KINDS];             /* so many are in ... */
    struct map_node *spare[MAP_KINDS];    /* ... this list: `end` is the address of the next */
};

/* A place that holds a link: of this node, or the top. */
struct map_place {
    struct map_node *node;
    uintptr_t *slot;
};

/* Takes rounds until one says something else than AGAIN. 0: DONE, and as many objects more are counted; ENOMEM, EEXIST or
 * ENOENT. */
int map_update(struct map_update *update, enum round (*round)(struct map_update *update),
               int64_t objects);

/* Whether so many spare nodes of this kind are there; if not, they are wanted. */
bool map_want(struct map_update *update, unsigned kind, size_t count);

/* A spare node, with this prefix, and nothing else. There is one. */
struct map_node *map_take(struct map_update *update, unsigned kind, uint64_t prefix);

/* False: the node is gone. */
bool map_lock(struct map_node *node);
void map_unlock(struct map_node *node);

/* Locks the node, if it is not gone, and the link in its slot is this one. */
bool map_lock_place(const struct map_place *place, uintptr_t link);

/* The same, and the node that the link leads to, which is not gone then. */
bool map_lock_both(const struct map_place *place, struct map_node *node);
void map_unlock_both(const struct map_place *place, struct map_node *node);

/* Under the lock of `place`, and of `node`, which its link leads to: puts `link` in its stead. Unlocks both. */
void map_put_instead(struct map_update *update, const struct map_place *place,
                     struct map_node *node, uintptr_t link);

/* Under its lock: it is unlinked. The update defers it. */
void map_mark_gone(struct map_node *node);

static inline struct map_place map_top(struct prudence_map *map)
{
    return (struct map_place){.node = &map->top.node, .slot = &map->top.root};
}

static inline bool map_is_top(const struct prudence_map *map, const struct map_node *node)
{
    return node == &map->top.node;
}

/* A section of a thread that is not inside one by the domain's own rules. */
static inline void map_section_enter(const struct prudence_map *map)
{
    if (likely(map->own_sections))
        prudence_domain_read_lock(map->domain);
}

static inline void map_section_leave(const struct prudence_map *map)
{
    if (likely(map->own_sections))
        prudence_domain_read_unlock(map->domain);
}

/* map_add.c: the object, which is the caller's or an entry, is added, or takes the place of the one with its key. *there: the one that was
 * there; NULL: none. 0; EEXIST: unless `replacing`; ENOMEM. */
int map_add(struct prudence_map *map, struct prudence_map_node *node, bool replacing,
            struct prudence_map_node **there);

/* map_remove.c: the object with this key, and this object if one is given. */
struct prudence_map_node *map_remove(struct prudence_map *map, const struct map_key *key,
                                     uintptr_t object);
/* The keys are the same. 0, or ENOENT. */
int map_replace(struct prudence_map *map, const struct map_key *key, struct prudence_map_node *old,
                struct prudence_map_node *fresh);

/* map_tidy.c: makes the nodes on the way of the key as small as they can be, as far as there is memory. */
void map_tidy(struct prudence_map *map, const struct map_key *key);

/* Whether the node may be worth it, after it lost a link. */
bool map_is_untidy(const struct map_node *node);

#endif /* STRUCTURES_MAP_UPDATE_H */
