/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The budget bounds the bytes that the caches of a CPU, and of all CPUs, may hold. */
#ifndef SLAB_RECLAIM_BUDGET_H
#define SLAB_RECLAIM_BUDGET_H

#include "base/list.h"
#include "os/os.h"

struct cpu_cache;
struct prudence_cache;

struct cpu_budget {
    int64_t used; /* bytes that object caches and rings of all slab caches may hold; atomic */
    /* Used by budget_share.c. */
    struct list *hand;       /* the cache to ask next; under slab_caches_lock */
    uint32_t in_vain, pause; /* hints, like `wishes` */
    uint32_t wishes;         /* wishes ever made; the clock by which hits are weighed */
    char pad[CACHE_LINES_APART - 4 * sizeof(uint64_t)];
};
extern struct cpu_budget *slab_budgets;
extern uint64_t slab_cache_per_cpu, slab_cache_total; /* bytes; options */
bool budget_start(void);
void budget_stop(void);
unsigned budget_least(const struct prudence_cache *cache);
int64_t budget_charge(const struct prudence_cache *cache, const struct cpu_cache *cpu,
                      unsigned size);
void budget_ring_begins(const struct prudence_cache *cache, const struct cpu_cache *cpu);
bool budget_allows(const struct prudence_cache *cache, const struct cpu_cache *cpu, unsigned size);
bool budget_allows_start(const struct prudence_cache *cache, const struct cpu_cache *cpu);
bool budget_grow(const struct prudence_cache *cache, struct cpu_cache *cpu, unsigned size);
void budget_shrink(const struct prudence_cache *cache, struct cpu_cache *cpu, unsigned size);

#endif /* SLAB_RECLAIM_BUDGET_H */
