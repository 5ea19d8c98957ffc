/* SPDX-License-Identifier: MIT */
/*
 * The caches of a table, each made when the table needs the first object of that size. So a table
 * with few objects has few caches, or none. With thousands of caches, each takes a few hundred
 * bytes until it is used often (heap/cold.c).
 *
 * A table whose readers are not in the default domain makes one cache at once, because a domain
 * with a cache cannot be destroyed, and so not before the table.
 */
#ifndef TABLES_OWN_CACHE_H
#define TABLES_OWN_CACHE_H

#include <prudence/prudence.h>

#include "base/atomic.h"
#include "base/base.h"

struct prudence_cache_stats;

#define OWNER_NAME_SIZE 32

/* What the caches of a table have in common. */
struct cache_owner {
    struct prudence_domain *domain; /* constant, like the name */
    bool forked; /* in a child: another thread may have had objects when the process was copied */
    char name[OWNER_NAME_SIZE];
};

/* Fills an owner that is 0. `domain` NULL means the default domain. */
void own_cache_init(struct cache_owner *owner, const char *name, struct prudence_domain *domain);

/* Returns whether the table has to make a cache at once. */
bool own_cache_is_needed(const struct cache_owner *owner);

/* Make the cache, unless another thread has. Return it, or NULL with errno. They take tables_lock,
 * and wait for nothing else. */
struct prudence_cache *own_cache_make(struct prudence_cache **place,
                                      const struct cache_owner *owner, size_t bytes,
                                      size_t alignment);
struct prudence_cache *own_cache_make_blocks(struct prudence_cache **place,
                                             const struct cache_owner *owner);

/* Returns the cache, which is made if necessary, or NULL. Acquire: pairs with its creation. */
static inline struct prudence_cache *own_cache(struct prudence_cache **place,
                                               const struct cache_owner *owner, size_t bytes,
                                               size_t alignment)
{
    struct prudence_cache *cache = load_acquire(place);

    return likely(cache != NULL) ? cache : own_cache_make(place, owner, bytes, alignment);
}

/* Destroys the cache, if it was made; where the thread may not wait, because a table could not be
 * made inside a section, a thread of the library does so later. The table has freed or deferred all
 * objects. Those that other threads had at a fork are freed first. */
void own_cache_destroy(struct prudence_cache *cache, const struct cache_owner *owner);

/* Shrink a cache, if it was made, and fill *stats, with 0 if it was not. */
void own_cache_shrink(struct prudence_cache *const *place);
void own_cache_stats(struct prudence_cache *const *place, struct prudence_cache_stats *stats);

#endif /* TABLES_OWN_CACHE_H */
