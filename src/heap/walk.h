/* SPDX-License-Identifier: MIT */
/* The heap as it is, some slabs at a time (walk.c). */
#ifndef HEAP_WALK_H
#define HEAP_WALK_H

#include <prudence/heap_walk.h>

#include "heap/heap.h"

#define WALK_SLABS   64
#define WALK_OBJECTS 16384 /* more than any slab has */

struct walked_object {
    uint64_t cookie;
    int32_t cpu;
    uint8_t state, wait; /* as in struct prudence_heap_object */
};

struct walked_slab {
    struct prudence_heap_slab told;
    const char *base;
    uint32_t objects;  /* of walk->objects: where its own begin */
    struct slab *slab; /* as long as the heap is held */
};

struct heap_walk {
    uint64_t only;  /* the number of a cache; 0: all */
    uintptr_t next; /* the pages from here on are still to come */
    unsigned slab_count, object_count;
    unsigned cache_count;
    bool fenced;                               /* the CPUs that are owned */
    struct prudence_cache *caches[WALK_SLABS]; /* of these slabs; as long as the heap is held */
    struct walked_slab slabs[WALK_SLABS];      /* by their addresses */
    struct walked_object objects[WALK_OBJECTS];
};

/* The next slabs, each at one instant. False: there are no more. Nothing may be held. */
bool heap_walk_next(struct heap_walk *walk);

#endif /* HEAP_WALK_H */
