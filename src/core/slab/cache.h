/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Creates and destroys slab caches. */
#ifndef SLAB_CACHE_H
#define SLAB_CACHE_H

#include "slab/cache_type.h"

struct prudence_cache *cache_create(const char *name, const struct cache_layout *layout);
void cache_warm(struct prudence_cache *cache, uint32_t extension);
bool cache_destroy(struct prudence_cache *cache, size_t *live);
/* Leaves the structure of a cache that has `common` to the caller, who gave it. */
void cache_forget(struct prudence_cache *cache);
/* Red zone and margin, in bytes, of caches made from now on. */
extern size_t slab_redzone, slab_margin;

#endif /* SLAB_CACHE_H */
