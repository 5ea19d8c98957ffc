/* SPDX-License-Identifier: MIT */
/*
 * Replaces slab caches for tables whose nodes are deferred, with memory from the explorer. A
 * deferred object is freed if no other thread is inside, which the cases' threads say in words of
 * their own; otherwise it is not freed.
 */
#ifndef MODEL_SOURCE_CACHES_H
#define MODEL_SOURCE_CACHES_H

#include <stddef.h>

struct prudence_cache;

/* Returns the cache of objects of `bytes`; 0: of arrays of any size, as
 * prudence_cache_create_blocks makes. */
struct prudence_cache *explored_cache(size_t bytes);

/* Marks a thread as inside, so that objects that it finds stay. Sections of this domain do the
 * same. */
void enter(void);
void leave(void);
struct prudence_domain;
extern struct prudence_domain *const explored_domain;

#endif /* MODEL_SOURCE_CACHES_H */
