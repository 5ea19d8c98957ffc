/* SPDX-License-Identifier: MIT */
/* A snapshot of the heap, some slabs at a time (walk.c). */
#ifndef OBSERVE_WALK_H
#define OBSERVE_WALK_H

#include <prudence/heap_walk.h>

#include "heap/heap.h"

#define WALK_SLABS   64
#define WALK_OBJECTS 32768 /* no slab has more (walk.c) */

struct walked_object {
    uint64_t cookie;
    int32_t cpu;
    uint8_t state, wait; /* as in struct prudence_heap_object */
};

#define WALK_HIDDEN                                                                                \
    (PRUDENCE_OBJECT_RESTING + 1) /* a state: of another cache than the one asked for */

struct walked_slab {
    struct prudence_heap_slab told;
    const char *base;
    uint32_t capacity; /* objects, including hidden ones */
    uint32_t objects;  /* index of the first object in walk->objects */
    struct slab *slab; /* valid while the heap is held */
};

struct heap_walk {
    uint64_t only; /* number of a cache, or 0 for all */
    const struct prudence_cache *owner,
        *common;    /* that cache, and the one that it shares slabs of */
    uintptr_t next; /* first address still to be walked */
    unsigned slab_count, object_count;
    unsigned cache_count;
    bool fenced;                               /* whether the owned CPUs were fenced */
    struct prudence_cache *caches[WALK_SLABS]; /* of these slabs; valid while the heap is held */
    struct walked_slab slabs[WALK_SLABS];      /* sorted by address */
    struct walked_object objects[WALK_OBJECTS];
};

/* Reads the next slabs, each at one instant. Returns false if there are no more. The caller holds
 * nothing. */
bool heap_walk_next(struct heap_walk *walk);

#endif /* OBSERVE_WALK_H */
