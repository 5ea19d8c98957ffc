/* SPDX-License-Identifier: MIT */
/* The extension shuffle: freed objects are used again in random order (see shuffle.c). */
#ifndef DEBUG_SHUFFLE_H
#define DEBUG_SHUFFLE_H

#include "debug/settings.h"
#include "slab/extension.h"

enum { SHUFFLE_EXTENSION = 9 }; /* its number */
extern const struct slab_extension shuffle_extension;

/* What rests of `cache` is looked at once more and leaves; it is free then. The caller holds slab_caches_lock, or uses the
 * cache. */
void shuffle_flush(struct prudence_cache *cache);
void shuffle_flush_all(void);

#endif /* DEBUG_SHUFFLE_H */
