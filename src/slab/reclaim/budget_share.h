/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Slab caches on a CPU give room to those that are used more. */
#ifndef SLAB_RECLAIM_BUDGET_SHARE_H
#define SLAB_RECLAIM_BUDGET_SHARE_H

#include "base/base.h"

struct prudence_cache;

void give_start(void);
void give_to(struct prudence_cache *cache, unsigned size);
void give_half(struct prudence_cache *cache);
void give_forget(const struct prudence_cache *cache);

#endif /* SLAB_RECLAIM_BUDGET_SHARE_H */
