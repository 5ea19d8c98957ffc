/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Slow paths after the gate, to allocate (alloc.c), free (free.c) and defer (defer.c) an object. */
#ifndef SLAB_SLOW_PATH_H
#define SLAB_SLOW_PATH_H

#include "os/os.h"

struct prudence_cache;
struct slab;

void *alloc_from_cache(struct prudence_cache *cache, os_alloc_flags flags);
size_t alloc_bulk_from_cache(struct prudence_cache *cache, size_t count, void **objects,
                             os_alloc_flags flags);
void free_to_cache(struct slab *slab, void *object);
void defer_in_cache(struct slab *slab, void *object);

#endif /* SLAB_SLOW_PATH_H */
