/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Slow paths after the gate, to allocate (alloc.c), free (free.c) and defer (defer.c) an object. */
#ifndef SLAB_SLOW_PATH_H
#define SLAB_SLOW_PATH_H

#include "os/os.h"

struct prudence_cache;
struct slab;

void *cache_take(struct prudence_cache *cache, os_alloc_flags flags);
size_t cache_take_bulk(struct prudence_cache *cache, size_t count, void **objects,
                       os_alloc_flags flags);
void cache_put(struct slab *slab, void *object);
void cache_defer(struct slab *slab, void *object);

#endif /* SLAB_SLOW_PATH_H */
