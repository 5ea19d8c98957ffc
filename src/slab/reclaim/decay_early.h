/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Lets every cache use the free slabs of others. */
#ifndef SLAB_RECLAIM_DECAY_EARLY_H
#define SLAB_RECLAIM_DECAY_EARLY_H

#include "base/base.h"

struct prudence_cache;

void spare_give(unsigned node, size_t bytes);
void spare_forget(const struct prudence_cache *cache);

#endif /* SLAB_RECLAIM_DECAY_EARLY_H */
