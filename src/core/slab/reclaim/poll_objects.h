/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Sifts latent objects of caches whose domain tells of single objects (CACHE_SIFTED). */
#ifndef SLAB_RECLAIM_SIFT_H
#define SLAB_RECLAIM_SIFT_H

#include "slab/cache_type.h"
#include "slab/cpu_cache.h"

void sift_batch(struct prudence_cache *cache, void **objects, unsigned count, gp_cookie cookie);
void sift_cpu(struct prudence_cache *cache, struct cpu_cache *cpu, bool here);
void sift_nodes(struct prudence_cache *cache);
void sift_here(struct prudence_cache *cache);

#endif /* SLAB_RECLAIM_SIFT_H */
