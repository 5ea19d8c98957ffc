/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The gate serves objects that the fast path (heap/object.h) did not serve.
 *
 * Callers ask for `size` bytes, or 0 for a whole object. Reports name the caller by the last
 * parameter.
 */
#ifndef SLAB_GATE_H
#define SLAB_GATE_H

#include "os/os.h"

struct prudence_cache;
struct slab;

void *gate_alloc(struct prudence_cache *cache, size_t size, os_alloc_flags flags);
/* Allocates without extensions. */
void *gate_take(struct prudence_cache *cache, os_alloc_flags flags);
size_t gate_alloc_bulk(struct prudence_cache *cache, size_t count, void **objects,
                       os_alloc_flags flags);
void gate_free(struct slab *slab, void *object, const char *what);
void gate_free_deferred(struct slab *slab, void *object, const char *what);
/* Frees an object that an extension kept until now. */
void gate_put_kept(struct slab *slab, void *object);

#endif /* SLAB_GATE_H */
