/* SPDX-License-Identifier: MIT */
/* Caches that programs make (see caches.c). */
#ifndef HEAP_CACHES_H
#define HEAP_CACHES_H

#include "slab/cache_type.h"

/* Makes a cache at `place`, unless another thread has made one there. Returns what is there, or
 * NULL if there is no memory. */
struct prudence_cache *caches_make(struct prudence_cache **place, const char *name,
                                   struct cache_layout *layout);

/* Destroys a cache as prudence_cache_destroy() does, for the public function `what`, which `caller`
 * called. */
int caches_destroy(struct prudence_cache *cache, const char *what, void *caller);

#endif /* HEAP_CACHES_H */
