/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The list of all slab caches, and how to hold one of them. */
#ifndef SLAB_ALL_CACHES_H
#define SLAB_ALL_CACHES_H

#include "base/list.h"
#include "os/os.h"
#include "slab/cache_type.h"

extern struct os_lock slab_caches_lock;
extern struct list slab_caches;      /* all caches that are not cold */
extern struct list slab_cold_caches; /* in the order of their numbers, as the other list */
/* Returns the cache with the least number above `number`, or NULL. The caller holds the lock. */
struct prudence_cache *all_caches_after(uint64_t number);
void all_caches_remove(struct prudence_cache *cache);
struct prudence_cache *all_caches_hold_after(struct prudence_cache *cache);
void all_caches_visit(void (*visit)(struct prudence_cache *cache));
void all_caches_wait_for_visitors(const struct prudence_cache *cache);

/* Keeps the cache from destruction until cache_let_go(). The caller holds slab_caches_lock. A
 * thread that holds a cache waits only for a node's lock, slab_caches_lock and the end of a fork,
 * and makes no call that the program may have replaced. */
static inline void cache_hold(struct prudence_cache *cache)
{
    os_visit_begin();
    add_relaxed(&cache->body->visitors, 1);
}

/* Release: the destruction sees all that the holder did to the cache. */
static inline void cache_let_go(struct prudence_cache *cache)
{
    __atomic_fetch_sub(&cache->body->visitors, 1, __ATOMIC_RELEASE);
    os_visit_end();
}

#endif /* SLAB_ALL_CACHES_H */
