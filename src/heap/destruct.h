/* SPDX-License-Identifier: MIT */
/* Destructors of deferred objects (see destruct.c). Only for caches that have one. */
#ifndef HEAP_DESTRUCT_H
#define HEAP_DESTRUCT_H

#include "heap/heap.h"

void destruct_start(void);

/* The object is about to be deferred. */
void destruct_note(struct slab *slab, void *object);

/* An object that was freed, not deferred: runs its destructor now. */
void destruct_freed(struct slab *slab, void *object);

/* `object` was taken from the cache and is about to be handed out. Runs its destructor if that has not run;
 * where the caller may run none, takes another object. NULL: there is no memory for one. */
void *destruct_before_use(struct prudence_cache *cache, void *object);

/* The cache whose destructor this thread is in; NULL: in none. */
const struct prudence_cache *destruct_here(void);

/* Runs destructors that let a slab go, if the caller may run any. Does not wait. */
void destruct_shrink(struct prudence_cache *cache);

/* Waits until the destructors of all objects that were deferred before have returned, and runs them here or
 * waits for the threads that do. The caller may wait for the program's code (may_wait.c). */
void destruct_barrier(struct prudence_cache *cache);

/* The same before the cache is destroyed: of objects that destructors defer as well; and the worker does not look
 * at the cache any more. */
void destruct_all(struct prudence_cache *cache);

/* Has the worker look at caches whose destruct_wanted is set. Any locks may be held. */
void destruct_kick(void);

/* In a forked child (destruct_fork.c). Not whole: fork took no lock, so nothing can be counted. */
void destruct_fork_child(bool whole);

/* --- between destruct.c and destruct_fork.c --- */

#define DESTRUCT_NO_EPOCH 2

/* A destructor that this thread is in, and the objects that it will run next. */
struct destruct_run {
    struct slab *slab;
    unsigned epoch; /* in which the object counts; DESTRUCT_NO_EPOCH: it was freed */
    void **hand;    /* taken out of their slabs; each counts as long as its bit is set */
    unsigned in_hand;
    struct destruct_run *outer;
};
extern __thread struct destruct_run *destruct_runs;

/* Objects taken out of their slabs by a thread that runs their destructors. All of them are in a list, so
 * that a forked child finds those of threads that it does not have; under slab_caches_lock. */
struct destruct_hand {
    struct list link;
    struct prudence_cache *cache;
    const void *thread; /* the address of its destruct_runs */
    void **objects;
    unsigned count;
};
extern struct list destruct_hands;

/* The epoch in which the object's destructor is to be run; DESTRUCT_NO_EPOCH: it is not. */
unsigned destruct_epoch(struct slab *slab, const void *object);

void destruct_forget_worker(void);

#endif /* HEAP_DESTRUCT_H */
