/* SPDX-License-Identifier: MIT */
/* Frees expired objects, or defers them for readers that still hold them. Private to scm/. */
#ifndef SHORTTERM_FREE_EXPIRED_H
#define SHORTTERM_FREE_EXPIRED_H

#include <errno.h>

#include "guard/annotate.h"
#include "heap/object.h"
#include "shortterm/settings.h"
#include "slab/gate.h"

/* The object's word is 0, so the extension does not report the free. */
static inline void free_expired_slow(struct slab *slab, void *object, bool deferred)
{
    int saved_errno = errno;

    if (deferred)
        gate_free_deferred(slab, object, "expiration");
    else
        gate_free(slab, object, "expiration");
    errno = saved_errno;
}

static inline __attribute__((always_inline)) void free_expired(struct slab *slab, void *object)
{
    struct prudence_cache *cache = slab->cache;
    bool deferred = load_relaxed(&scm_deferred);

    if (likely(!deferred) && likely(cache_is_plain(cache)) &&
        os_percpu_push(&cache->percpu, object))
        return;
    annotate_taken(slab, object);
    free_expired_slow(slab, object, deferred);
}

#endif /* SHORTTERM_FREE_EXPIRED_H */
