/* SPDX-License-Identifier: MIT */
/* Destructors of deferred objects (see destruct.c). Only for caches that have a destructor. */
#ifndef TOOLKIT_CALLBACKS_DESTRUCT_H
#define TOOLKIT_CALLBACKS_DESTRUCT_H

#include "fork_part.h"
#include "slab/extension.h"
#include "slab/slab.h"

enum { DESTRUCT_EXTENSION = 4 }; /* the extension's number */
extern const struct slab_extension destruct_extension;

/* Returns the cache whose destructor this thread is in, or NULL. */
const struct prudence_cache *destruct_here(void);

/* --- for destruct_barrier.c, destruct_worker.c and destruct_fork.c --- */

#define DESTRUCT_NO_EPOCH    2
#define DESTRUCT_BOTH_EPOCHS 3u /* set of epochs, one bit each */

extern uint32_t destruct_wanted; /* some cache wants the worker; atomic */

/* Extends a cache that has a destructor; all fields are atomic but the last. */
struct destruct_cache {
    uint64_t pending[2];    /* objects whose destructor has not returned, by epoch of deferral */
    uint32_t pending_epoch; /* the lowest bit is the epoch that deferrals count in */
    uint32_t wanted;        /* destructors keep free slabs from being freed */
    /* An allocation that may run no destructor found only objects with pending ones. */
    uint32_t any;
    uintptr_t barrier_runner; /* the thread whose barrier changes epochs; 0: none */
    uint64_t barriers_begun, barriers_ended;
    uint64_t turn; /* number of the worker's last turn here */
};

static inline struct destruct_cache *destruct_of_cache(const struct prudence_cache *cache)
{
    return cache->body->destructs;
}

/* Returns the number of objects whose destructor has not returned. */
static inline uint64_t destruct_pending(const struct prudence_cache *cache)
{
    const struct destruct_cache *own = destruct_of_cache(cache);

    return load_acquire(&own->pending[0]) + load_acquire(&own->pending[1]);
}

/* Returns an epoch's bits of the slab, bits_words(capacity) words: deferred objects whose
 * destructor has not begun. They are latent, or free and not handed out again. Atomic, without a
 * lock; the second epoch's follow the first one's. */
static inline uint64_t *pending_bits(const struct slab *slab, unsigned epoch)
{
    return (uint64_t *)slab->side[DESTRUCT_EXTENSION] + (size_t)epoch * bits_words(slab->capacity);
}

/* A destructor that this thread is in, and the objects that the thread will destroy next. */
struct destruct_run {
    struct slab *slab;
    unsigned epoch; /* the object's epoch; DESTRUCT_NO_EPOCH: freed, not deferred */
    void **hand;    /* taken out of their slabs; each counts while its bit is set */
    unsigned in_hand;
    struct destruct_run *outer;
};
extern __thread struct destruct_run *destruct_runs;

/* Objects taken out of their slabs by a thread that runs their destructors. A list has all such
 * hands, under slab_caches_lock, so that a forked child finds those of missing threads. */
struct destruct_hand {
    struct list link;
    struct prudence_cache *cache;
    const void *thread; /* the address of the thread's destruct_runs */
    void **objects;
    unsigned count;
    /* Objects whose destructors have returned, which still count as pending, in this epoch. One
     * subtraction for many, because deferring threads write the same line. */
    unsigned ended, epoch;
};
extern struct list destruct_hands;

/* Returns the epoch of the object's pending destructor; DESTRUCT_NO_EPOCH if none is pending. */
unsigned destruct_epoch(const struct slab *slab, const void *object);

/* Runs some destructors of the epochs in the set; returns their number. Unless `any_slab`, only in
 * slabs that could be freed. */
unsigned destruct_some(struct prudence_cache *cache, bool any_slab, unsigned epochs);

extern const struct fork_part destruct_fork_part;

#endif /* TOOLKIT_CALLBACKS_DESTRUCT_H */
