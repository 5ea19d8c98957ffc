/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Polls single latent objects of caches whose domain reports them (CACHE_POLLS_OBJECTS). */
#ifndef SLAB_RECLAIM_POLL_OBJECTS_H
#define SLAB_RECLAIM_POLL_OBJECTS_H

#include "slab/cache_type.h"
#include "slab/cpu_cache.h"

void poll_objects_of_batch(struct prudence_cache *cache, void **objects, unsigned count,
                           gp_cookie cookie);
void poll_objects_of_cpu(struct prudence_cache *cache, struct cpu_cache *cpu, bool here);
void poll_objects_of_nodes(struct prudence_cache *cache);
void poll_objects_here(struct prudence_cache *cache);

#endif /* SLAB_RECLAIM_POLL_OBJECTS_H */
