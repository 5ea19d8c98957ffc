/* SPDX-License-Identifier: MIT */
/* Destructors of deferred objects (see destruct.c). Only for caches that have one. */
#ifndef RCU_DESTRUCT_H
#define RCU_DESTRUCT_H

#include "slab/extension.h"
#include "slab/slab.h"

enum { DESTRUCT_EXTENSION = 4 }; /* its number */
extern const struct slab_extension destruct_extension;

void destruct_start(void);

/* The cache whose destructor this thread is in; NULL: in none. */
const struct prudence_cache *destruct_here(void);

/* Runs destructors that let a slab go, if the caller may run any. Does not wait. */
void destruct_shrink(struct prudence_cache *cache);

/* Waits until the destructors of all objects that were deferred before have returned: runs them here, or waits for
 * the threads that do. The caller may wait for the program's code (may_wait.c). */
void destruct_barrier(struct prudence_cache *cache);

/* The same before the cache is destroyed: also for objects that destructors defer; and the worker does not look at
 * the cache any more. */
void destruct_all(struct prudence_cache *cache);

/* In a forked child (destruct_fork.c). Not whole: fork took no lock, so nothing can be counted. */
void destruct_fork_child(bool whole);

/* --- between destruct.c and destruct_fork.c --- */

#define DESTRUCT_NO_EPOCH 2

/* Of a cache with a destructor; all atomic but the last. */
struct destruct_cache {
    uint64_t pending[2];      /* objects whose destructor has not returned, by epoch of deferral */
    uint32_t pending_epoch;   /* which of them deferrals count in: its lowest bit */
    uint32_t wanted;          /* free slabs cannot go */
    uint32_t any;             /* an allocation may run no destructor, and found nothing else */
    uintptr_t barrier_runner; /* the thread whose barrier changes epochs; 0: none */
    uint64_t barriers_begun, barriers_ended;
    uint64_t turn; /* when the worker was here last */
};

/* Of a slab of such a cache; atomic, without a lock. */
struct destruct_slab {
    uint32_t pending; /* objects whose destructor has not returned */
    /* Deferred objects whose destructor has not begun: latent ones, and free ones that were not handed out again. Of
     * both epochs, bits_words(capacity) words each. */
    uint64_t bits[];
};

static inline struct destruct_cache *destruct_of_cache(const struct prudence_cache *cache)
{
    return cache->side[DESTRUCT_EXTENSION];
}

static inline struct destruct_slab *destruct_of(const struct slab *slab)
{
    return slab->side[DESTRUCT_EXTENSION];
}

static inline uint64_t *pending_bits(const struct slab *slab, unsigned epoch)
{
    return destruct_of(slab)->bits + (size_t)epoch * bits_words(slab->capacity);
}

/* A destructor that this thread is in, and the objects that it will run next. */
struct destruct_run {
    struct slab *slab;
    unsigned epoch; /* in which the object counts; DESTRUCT_NO_EPOCH: it was freed */
    void **hand;    /* taken out of their slabs; each counts as long as its bit is set */
    unsigned in_hand;
    struct destruct_run *outer;
};
extern __thread struct destruct_run *destruct_runs;

/* Objects taken out of their slabs by a thread that runs their destructors. All such lists are in a list, under
 * slab_caches_lock, so that a forked child finds those of threads that it does not have. */
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

#endif /* RCU_DESTRUCT_H */
