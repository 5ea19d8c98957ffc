/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Slab caches on a CPU share its budget: those that are used more get room of the others. */
#ifndef SLAB_RECLAIM_BUDGET_SHARE_H
#define SLAB_RECLAIM_BUDGET_SHARE_H

#include "base/base.h"

struct prudence_cache;

void budget_share_start(void);
void budget_share_for(struct prudence_cache *cache, unsigned size);
void budget_share_halve(struct prudence_cache *cache);
void budget_share_forget(const struct prudence_cache *cache);

#endif /* SLAB_RECLAIM_BUDGET_SHARE_H */
