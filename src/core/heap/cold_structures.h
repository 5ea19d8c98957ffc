/* SPDX-License-Identifier: MIT */
/* Memory for the structures of caches that begin cold (see cold_structures.c). */
#ifndef HEAP_COLD_STRUCTURES_H
#define HEAP_COLD_STRUCTURES_H

struct prudence_cache;

/* Returns the memory of a structure, which is 0, or NULL. The caller holds heap_lock, also to give
 * the memory back. */
struct prudence_cache *cold_structures_take(void);
void cold_structures_give(struct prudence_cache *structure);

#endif /* HEAP_COLD_STRUCTURES_H */
