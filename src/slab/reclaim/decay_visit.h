/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Upkeep that threads on a slow path do for all. */
#ifndef SLAB_RECLAIM_DECAY_VISIT_H
#define SLAB_RECLAIM_DECAY_VISIT_H

#include "base/base.h"

struct prudence_cache;

void pages_decay(void);
void come_by(void);
#define BYPASSES_A_VISIT 16
bool count_bypass(struct prudence_cache *cache);

#endif /* SLAB_RECLAIM_DECAY_VISIT_H */
