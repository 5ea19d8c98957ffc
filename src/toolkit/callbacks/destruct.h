/* SPDX-License-Identifier: MIT */
/* Destructors of deferred objects (see destruct.c). Only for caches that have a destructor. */
#ifndef TOOLKIT_CALLBACKS_DESTRUCT_H
#define TOOLKIT_CALLBACKS_DESTRUCT_H

#include "fork_part.h"
#include "slab/extension.h"
#include "slab/reuse.h"
#include "slab/slab.h"

enum { DESTRUCT_EXTENSION = 4 }; /* the extension's number */
extern const struct slab_extension destruct_extension;

/* For reuse_upcalls (slab/reuse.h). */
bool destruct_may_run(void);
void *destruct_apart(struct prudence_cache *cache);
void destruct_put_off(unsigned cache_flags);
void destruct_to_slabs(struct prudence_cache *cache, void **objects, unsigned count);
void destruct_to_reuse(struct reuse *reuse);
void destruct_sort(struct reuse *reuse);
void destruct_make_fit(struct reuse *reuse);

/* Returns the cache whose destructor this thread is in, or NULL. */
const struct prudence_cache *destruct_here(void);

/* --- for destruct_barrier.c, destruct_worker.c and destruct_fork.c --- */

#define DESTRUCT_NO_EPOCH    2
#define DESTRUCT_BOTH_EPOCHS 3u /* set of epochs, one bit each */

extern uint32_t destruct_wanted; /* some cache wants the worker; atomic */

/* The worker reads caches with DESTRUCT_SOON; atomic. With membarrier, reuse_watched[1] says
 * so. */
extern uint32_t destruct_watches;

/* Has the worker check such caches. Called after a deferral to one. */
void destruct_watch(void);

/* Extends a cache that has a destructor; all fields are atomic but the last. */
struct destruct_cache {
    /* Objects past the rings whose destructor has not returned, by the epoch in which they went out
     * of the ring. */
    uint64_t pending[2];
    uint32_t pending_epoch; /* the lowest bit is the epoch that objects count in */
    uint32_t wanted;        /* destructors keep free slabs from being freed */
    /* An allocation that may run no destructor found only objects with pending ones. */
    uint32_t any;
    uintptr_t barrier_runner; /* the thread whose barrier changes epochs; 0: none */
    uint64_t barriers_begun, barriers_ended;
    uint64_t turn; /* number of the worker's last turn here */
    /* Of caches with DESTRUCT_SOON: the tails of the CPUs' rings when the worker last checked, and
     * when that was, in ns. Written by the worker. */
    uint64_t *tails, looked_at;
};

static inline struct destruct_cache *destruct_of_cache(const struct prudence_cache *cache)
{
    return cache->body->destructs;
}

/* Returns the number of objects past the rings whose destructor has not returned. */
static inline uint64_t destruct_pending(const struct prudence_cache *cache)
{
    const struct destruct_cache *own = destruct_of_cache(cache);

    return load_acquire(&own->pending[0]) + load_acquire(&own->pending[1]);
}

/* Returns an epoch's bits of the slab, bits_words(capacity) words: deferred objects, in no ring and
 * in no hand, whose destructor has not begun. They are latent, or free and not handed out again.
 * Atomic, without a lock; the second epoch's follow the first one's. */
static inline uint64_t *pending_bits(const struct slab *slab, unsigned epoch)
{
    return (uint64_t *)slab->side[DESTRUCT_EXTENSION] + (size_t)epoch * bits_words(slab->capacity);
}

/* Returns the epoch of the object's pending destructor; DESTRUCT_NO_EPOCH if none is pending. */
unsigned destruct_epoch(const struct slab *slab, const void *object);

/* Marks objects as pending in this epoch, without counting them. */
void destruct_mark(struct slab *slab, void *object, unsigned epoch);

/* Runs some destructors of the epochs in the set; returns their number. Unless `any_slab`, only in
 * slabs that could be freed. */
unsigned destruct_some(struct prudence_cache *cache, bool any_slab, unsigned epochs);

extern const struct fork_part destruct_fork_part;

#endif /* TOOLKIT_CALLBACKS_DESTRUCT_H */
