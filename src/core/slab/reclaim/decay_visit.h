/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The work of decay that threads on a slow path do for the whole process. */
#ifndef SLAB_RECLAIM_DECAY_VISIT_H
#define SLAB_RECLAIM_DECAY_VISIT_H

#include "base/base.h"

struct prudence_cache;

void decay_visit(void);
void decay_visit_and_drive(void);
/* Policy: how often does a thread visit for decay? */
#define BYPASSES_A_VISIT 16 /* tries; that bypass a busy CPU, for one visit */

bool decay_visit_count_bypass(struct prudence_cache *cache);

#endif /* SLAB_RECLAIM_DECAY_VISIT_H */
