/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Free slabs decay early if another cache grows. */
#ifndef SLAB_RECLAIM_DECAY_EARLY_H
#define SLAB_RECLAIM_DECAY_EARLY_H

#include "base/base.h"

struct prudence_cache;

void decay_early(struct prudence_cache *cache, unsigned node, size_t bytes);
void decay_early_forget(const struct prudence_cache *cache);

#endif /* SLAB_RECLAIM_DECAY_EARLY_H */
