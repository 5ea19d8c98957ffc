/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Objects of caches with CACHE_DESTRUCTED on their way to an object cache (see reuse.c). */
#ifndef SLAB_REUSE_H
#define SLAB_REUSE_H

#include "slab/cpu_cache.h"

#define REUSE_MAX 32 /* objects; an allocation waits until all of them are fit */

struct reuse {
    struct prudence_cache *cache;
    bool may; /* the thread may make objects fit */
    unsigned count;
    unsigned fit;    /* this many, from the first on, need nothing */
    uint32_t epochs; /* of the extension, one bit for each object */
    void *objects[REUSE_MAX];
};

/* Functions of the part that makes objects fit, given by the program that embeds the slab layer. A
 * program without that part has no caches with CACHE_DESTRUCTED, and NULL here. */
struct reuse_upcalls {
    /* Returns whether this thread may make objects fit. It carries nothing. */
    bool (*may_reuse)(void);
    /* Allocates an object that needs nothing, for a caller that may not. Returns NULL if there is
     * no memory. */
    void *(*apart)(struct prudence_cache *cache);
    /* Called after a deferral, when the object, slab and cache may be gone. */
    void (*put_off)(unsigned cache_flags);
    /* Called before deferred objects go to their slabs, safe or not: by the owner of the ring that
     * they leave, or by a thread that defers past the rings, perhaps under the node's lock. The
     * same object may come twice. Takes no lock, makes no system call and does not wait. */
    void (*to_slabs)(struct prudence_cache *cache, void **objects, unsigned count);
    /* Called by the owner of a ring before safe objects leave it for reuse. The extensions' `safe`
     * is not called otherwise. Takes no lock either. */
    void (*to_reuse)(struct reuse *reuse);
    /* Called by a thread that carries free objects from slabs. Moves those to the front that need
     * nothing, and stores their number. The others are made fit, unless the thread may not. */
    void (*sort)(struct reuse *reuse);
    /* Makes the other objects fit for reuse. The caller carries them, and does afterwards, but not
     * while this runs. */
    void (*make_fit)(struct reuse *reuse);
};
extern const struct reuse_upcalls reuse_upcalls;

/* Deferrals to caches without and with CACHE_DESTRUCT_SOON need not be notified (put_off): the
 * extension watches, and makes all threads fence after it has stopped. Atomic; written by the
 * extension. */
extern uint32_t reuse_watched[2];

/* Notifies the extension about a deferral, unless it watches. */
static inline void reuse_put_off(unsigned cache_flags)
{
    compiler_barrier(); /* the load is after the append; see reuse_watched */
    if (unlikely(!load_relaxed(&reuse_watched[cache_flags & CACHE_DESTRUCT_SOON ? 1 : 0])))
        reuse_upcalls.put_off(cache_flags);
}

void *reuse_finish(struct reuse *reuse);

#endif /* SLAB_REUSE_H */
