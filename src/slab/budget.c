/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the object caches of a CPU may hold together, all slab caches counted.
 *
 * A cache begins with a few objects and doubles at each miss, up to what serves a batch well: so one that is used much
 * has that after some misses. That is for those who come first: where the CPU's caches may hold START_BYTES already, as
 * with thousands of slab caches, a further one grows by demand alone (alloc.c, weigh). Else they would hold more than
 * the CPU's own memory caches do, and each would be cold.
 *
 * Any thread; the sum changes where a size does, by the owner of those caches.
 */
#include "slab/cache.h"

#define START_BYTES ((int64_t)1 << 20)

struct cpu_budget {
    int64_t sizes; /* bytes of size x stride, of all slab caches */
    char pad[CACHE_LINES_APART - sizeof(int64_t)];
};

static struct cpu_budget *budgets READ_MOSTLY = NULL;

bool budget_start(void)
{
    budgets = os_meta_alloc(os_cpu_count() * sizeof *budgets);
    return budgets != NULL;
}

/* No cache is left. */
void budget_stop(void)
{
    if (budgets)
        os_meta_free(budgets, os_cpu_count() * sizeof *budgets);
    budgets = NULL;
}

/* The object cache of a CPU, owned, may hold so many objects from now on. */
void budget_set_size(const struct prudence_cache *cache, struct cpu_cache *cpu, unsigned size)
{
    int64_t change = ((int64_t)size - cpu->size) * (int64_t)cache->stride;

    add_relaxed(&budgets[cpu->line.cpu].sizes, change);
    store_relaxed(&cpu->size, size); /* read by the idle helper and statistics */
}

/* Whether an object cache may grow before demand says so. */
bool budget_allows_start(const struct prudence_cache *cache, const struct cpu_cache *cpu)
{
    return cpu->size < 2 * cache->batch &&
           load_relaxed(&budgets[cpu->line.cpu].sizes) < START_BYTES;
}
