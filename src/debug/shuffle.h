/* SPDX-License-Identifier: MIT */
/* The extension shuffle hands freed objects out again in random order (see shuffle.c). */
#ifndef DEBUG_SHUFFLE_H
#define DEBUG_SHUFFLE_H

#include "debug/settings.h"
#include "slab/extension.h"

enum { SHUFFLE_EXTENSION = 9 }; /* number of the extension */
extern const struct slab_extension shuffle_extension;

/* Check the resting objects of `cache` once more and free them. The caller holds slab_caches_lock,
 * or uses the cache. */
void shuffle_flush(struct prudence_cache *cache);
void shuffle_flush_all(void);

#endif /* DEBUG_SHUFFLE_H */
