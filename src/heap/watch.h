/* SPDX-License-Identifier: MIT */
/*
 * The watched path: what every call on a watched cache does when the process looks for bugs (see
 * watch.c). Cold: fast paths are closed for watched caches, so only slow sides look at `watched`.
 */
#ifndef HEAP_WATCH_H
#define HEAP_WATCH_H

#include "heap/heap.h"

extern bool zero_on_free; /* the option */

/* After options of the start were read or set: what is wanted of caches that are made from now on. */
void watch_start(void);

/* Makes traces possible, if they are wanted. Allocates perhaps: not from inside an allocation. */
void watch_prime(void);

/* `size`: what the caller asked for; 0: a whole object. */
void *watch_alloc(struct prudence_cache *cache, size_t size);
void watch_free(struct slab *slab, void *object, const char *what);
void watch_free_deferred(struct slab *slab, void *object);

/* A large block, which is live already; `zeroed`: known to be. */
void watch_large(struct slab *slab, size_t size, bool zeroed);

/* The bytes that may be used behind an object of a watched cache. */
size_t watch_usable(const struct slab *slab, const void *object);

/* Whether a reallocation moves it in any case, so that its bounds stay exact and no byte of it is
 * left as it was. */
bool watch_moves(const struct slab *slab);

/* Reports an object of a watched cache that is not live: freed, resting, or deferred. */
void watch_check_live(const struct slab *slab, const void *object, const char *what);

/* A deferred object's destructor has run: nobody looks at it any more. */
void watch_destroyed(struct slab *slab, void *object);

/* What rests is freed. _and_wait: also what other threads are just freeing. */
void watch_flush(void);
void watch_flush_and_wait(void);

void watch_fork_prepare(void);
void watch_fork_done(void);
void watch_fork_child(void);

/* What the user of an object may use of it: without the line that spreads some strides (ADR 38), and without the red
 * zone. */
static inline size_t slab_usable_bytes(const struct slab *slab)
{
    const struct prudence_cache *cache = slab->cache;

    if (!cache->lines)
        return slab->bytes;
    return round_up(cache->object_size + slab_watch.redzone, cache->alignment) - slab_watch.redzone;
}

/* The same, or less where the size that was asked for is noted. */
static inline size_t object_usable(const struct slab *slab, const void *object)
{
    return likely(!slab->cache->watched) ? slab_usable_bytes(slab) : watch_usable(slab, object);
}

#endif /* HEAP_WATCH_H */
