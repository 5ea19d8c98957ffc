/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Slabs of one object, which are large blocks, and objects that extensions put on pages of their
 * own. */
#ifndef SLAB_LARGE_H
#define SLAB_LARGE_H

#include "os/os.h"

struct prudence_cache;
struct slab;

struct slab *slab_large_make(struct prudence_cache *cache, size_t bytes, size_t alignment,
                             bool grown, bool *zeroed, os_alloc_flags flags);
bool slab_large_resize(struct slab *slab, size_t bytes);
struct slab *slab_large_make_lone(struct prudence_cache *cache, void *pages, size_t bytes,
                                  void *object, uint32_t extensions);

#endif /* SLAB_LARGE_H */
