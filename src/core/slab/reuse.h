/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Objects of caches with CACHE_DESTRUCTED on their way to an object cache (see reuse.c). */
#ifndef SLAB_REUSE_H
#define SLAB_REUSE_H

#include "slab/cpu_cache.h"
#include "slab/extension.h"

#define REUSE_MAX 32 /* objects; an allocation waits until all of them are fit */

struct reuse {
    struct prudence_cache *cache;
    bool may; /* the thread may make objects fit */
    unsigned count;
    unsigned fit;    /* so many, from the first on, need nothing */
    uint32_t epochs; /* of the extension, one bit for each object */
    void *objects[REUSE_MAX];
};

/* Deferrals to caches without and with CACHE_DESTRUCT_SOON need not be told (put_off): the
 * extension watches, and makes all threads fence after it has stopped. Atomic; written by the
 * extension. */
extern uint32_t reuse_watched[2];

/* Tells the extension about a deferral, unless it watches. */
static inline void reuse_put_off(unsigned cache_flags)
{
    compiler_barrier(); /* the load is after the append; see reuse_watched */
    if (unlikely(!load_relaxed(&reuse_watched[cache_flags & CACHE_DESTRUCT_SOON ? 1 : 0])))
        extensions_put_off(cache_flags);
}

void *reuse_finish(struct reuse *reuse);

#endif /* SLAB_REUSE_H */
