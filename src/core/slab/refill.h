/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Refill moves objects from slabs to an object cache. */
#ifndef SLAB_REFILL_H
#define SLAB_REFILL_H

#include "os/os.h"

struct cpu_cache;
struct prudence_cache;
struct slab_node;

unsigned refill_room(const struct prudence_cache *cache, const struct cpu_cache *cpu);
void *refill_object_cache(struct prudence_cache *cache, unsigned count, bool may_grow,
                          const struct slab_node **empty, os_alloc_flags flags);
void *refill_bypass_cache(struct prudence_cache *cache, os_alloc_flags flags);

#endif /* SLAB_REFILL_H */
