/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The gate serves objects that the fast path (fast_path.h) did not serve.
 *
 * Callers ask for `size` bytes, or 0 for a whole object. Reports name the caller by the last
 * parameter.
 */
#ifndef SLAB_GATE_H
#define SLAB_GATE_H

#include "os/os.h"

struct prudence_cache;
struct slab;

void *cache_alloc_slow(struct prudence_cache *cache, size_t size, os_alloc_flags flags);
size_t cache_alloc_bulk(struct prudence_cache *cache, size_t count, void **objects,
                        os_alloc_flags flags);
void cache_free_slow(struct slab *slab, void *object, const char *what);
void cache_free_deferred_slow(struct slab *slab, void *object, const char *what);
/* Frees an object that an extension kept until now. */
void cache_put_kept(struct slab *slab, void *object);

#endif /* SLAB_GATE_H */
