/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* CPUs that threads no longer use give their place to those where the threads are now. */
#ifndef SLAB_RECLAIM_ABANDONED_H
#define SLAB_RECLAIM_ABANDONED_H

#include "os/os.h"
#include "slab/cpu_cache.h"

bool abandoned_follow(struct prudence_cache *cache);

/* Makes the first arrays of this CPU. Returns false if it gets none yet, or as cpu_cache_grow()
 * does. */
static inline bool abandoned_grow(struct prudence_cache *cache)
{
    return OS_REMOTE_IS_QUICK ? abandoned_follow(cache)
                              : cpu_cache_grow(cache, cache->body->size_min);
}

#endif /* SLAB_RECLAIM_ABANDONED_H */
