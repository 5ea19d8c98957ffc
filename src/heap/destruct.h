/* SPDX-License-Identifier: MIT */
/* Destructors of deferred objects (see destruct.c). Only for caches that have one. */
#ifndef HEAP_DESTRUCT_H
#define HEAP_DESTRUCT_H

#include "heap/heap.h"

void destruct_start(void);

/* The object is about to be deferred. */
void destruct_note(struct slab *slab, void *object);

/* It is about to be handed out. */
void destruct_if_undone(struct slab *slab, void *object);

/* Runs the destructor of an object that nobody has. No lock of ours is held: it is the program's. */
void destruct_now(const struct prudence_cache *cache, void *object);

/* Runs destructors here: of all that are free and undone, or (unless `any_slab`) where that lets a slab
 * go; and waits for the worker if it is at this cache. The caller may hold no lock of ours. */
void destruct_all(struct prudence_cache *cache, bool any_slab);

/* Has the worker look at caches whose destruct_wanted is set. Any locks may be held. */
void destruct_kick(void);

#endif /* HEAP_DESTRUCT_H */
