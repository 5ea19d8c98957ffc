/* SPDX-License-Identifier: MIT */
/*
 * In the place of slab caches, for tables whose nodes are deferred: memory from the explorer. What is deferred is freed if no
 * other thread is inside, which the cases' threads say in words of their own; else it is not freed.
 */
#ifndef MODEL_SOURCE_CACHES_H
#define MODEL_SOURCE_CACHES_H

#include <stddef.h>

struct prudence_cache;

/* Of objects of so many bytes; 0: of arrays of any size, as of large_cache_create. */
struct prudence_cache *explored_cache(size_t bytes);

/* A thread is inside: what it finds stays. Sections of this domain are the same. */
void enter(void);
void leave(void);
struct prudence_domain;
extern struct prudence_domain *const explored_domain;

#endif /* MODEL_SOURCE_CACHES_H */
