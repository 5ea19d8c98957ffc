/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Drains what was in a CPU's ring at some time (see drain_ring.c). */
#ifndef SLAB_RECLAIM_DRAIN_RING_H
#define SLAB_RECLAIM_DRAIN_RING_H

#include "base/base.h"

struct prudence_cache;

bool drain_ring(struct prudence_cache *cache, unsigned cpu_number, uint64_t tail);
bool drain_ring_safe(struct prudence_cache *cache, unsigned cpu_number, uint64_t tail);

#endif /* SLAB_RECLAIM_DRAIN_RING_H */
