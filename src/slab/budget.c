/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * One budget for what a CPU caches: what object caches and rings of all slab caches may hold there.
 *
 * Charged is what they may hold, not what they do hold: size x stride of each slab cache. From its first deferral on
 * that CPU on it is charged twice, because `size` is the limit of its object cache and of its ring. So fast paths
 * count nothing, and the bound holds at any time. A size changes only here, by the owner of those caches. It grows
 * (alloc.c, weigh) while
 *   - all sizes of the CPU stay within cache_per_cpu; a slab cache that is nearly alone there may have twice as much,
 *     so that one of large objects has a thousand of them; and
 *   - all CPUs stay within cache_total. A quarter of that is divided equally, so that one CPU's caches cannot use up
 *     another's: a CPU goes beyond its part only while all together use less than the rest.
 * A cache begins with a few objects and doubles at each miss, up to what serves a batch well: so a cache that is used much
 * has that after some misses. Caches double by themselves only while a quarter of the budget suffices; the rest is for
 * demand. When the CPU's budget is used up, other caches give (give.c). Only these go beyond it:
 *   - floors: on a CPU that uses it, a slab cache may have a 256th of what a CPU may have in any case, at most what
 *     it begins with, and at least one object. Half of that when rings are many;
 *   - caches whose creator named a size (object_cache_bytes). They count, too.
 *
 * Any thread; sums change where a size does. A sum is raised before the size, and lowered after it.
 */
#include "slab/budget.h"

#include "os/os.h"
#include "slab/cache.h"
#include "slab/cpu_cache.h"
#include "slab/latent_account.h"

#define NEARLY_ALONE 8 /* the others have such a part of the budget, at most */
#define ALONE_MORE   2 /* times the budget */
#define START_PART   4 /* of the budget, for those that come first */
#define FLOOR_PART   256
#define KEPT_PART    4 /* of the total */

uint64_t slab_cache_per_cpu READ_MOSTLY = OS_CACHE_PER_CPU;
uint64_t slab_cache_total READ_MOSTLY = OS_CACHE_TOTAL;
struct cpu_budget *slab_budgets READ_MOSTLY = NULL;

/* What all CPUs use. Written where a size changes. */
static int64_t used_by_all __attribute__((aligned(CACHE_LINES_APART)));

bool budget_start(void)
{
    slab_budgets = os_meta_alloc(os_cpu_count() * sizeof *slab_budgets);
    return slab_budgets != NULL;
}

/* No cache is left. */
void budget_stop(void)
{
    if (slab_budgets)
        os_meta_free(slab_budgets, os_cpu_count() * sizeof *slab_budgets);
    slab_budgets = NULL;
    used_by_all = 0;
}

/* What caches of a CPU with that size are charged. */
int64_t budget_charge(const struct prudence_cache *cache, const struct cpu_cache *cpu,
                      unsigned size)
{
    size_t bytes = (size_t)size * cache->stride;

    return (int64_t)(load_relaxed(&cpu->line.ring_tail) ? 2 * bytes : bytes);
}

/* What each CPU may use, whatever the others do. */
static int64_t kept(void)
{
    return (int64_t)(load_relaxed(&slab_cache_total) / KEPT_PART / os_cpu_count());
}

static int64_t most_of_a_cpu(void)
{
    return (int64_t)load_relaxed(&slab_cache_per_cpu);
}

static bool fits(int64_t others, int64_t bytes)
{
    return others + bytes <= most_of_a_cpu() ||
           (others <= most_of_a_cpu() / NEARLY_ALONE && bytes / ALONE_MORE <= most_of_a_cpu());
}

/* What all may use together, where one has more than that. */
static int64_t shared(void)
{
    uint64_t total = load_relaxed(&slab_cache_total);

    return (int64_t)(total - total / KEPT_PART);
}

/* A CPU's use becomes `after`, by `change` more. False: the total does not allow it. */
static bool raise_total(int64_t after, int64_t change)
{
    int64_t now = load_relaxed(&used_by_all);

    do {
        if (after > kept() && change > shared() - now)
            return false;
    } while (!compare_exchange(&used_by_all, &now, now + change));
    return true;
}

static bool raise_cpu(const struct prudence_cache *cache, const struct cpu_cache *cpu,
                      unsigned size)
{
    int64_t *used = &slab_budgets[cpu->line.cpu].used, now = load_relaxed(used);
    int64_t mine = budget_charge(cache, cpu, cpu->size), bytes = budget_charge(cache, cpu, size);

    do {
        if (!fits(now - mine, bytes))
            return false;
    } while (!compare_exchange(used, &now, now - mine + bytes));
    if (raise_total(now - mine + bytes, bytes - mine))
        return true;
    sub_relaxed(used, bytes - mine);
    return false;
}

static void change_anyway(const struct prudence_cache *cache, struct cpu_cache *cpu, unsigned size)
{
    int64_t change = budget_charge(cache, cpu, size) - budget_charge(cache, cpu, cpu->size);

    add_relaxed(&slab_budgets[cpu->line.cpu].used, change);
    add_relaxed(&used_by_all, change);
}

/* Called by the owner before the first deferral of a cache on a CPU. If that takes more than the budget, the cache
 * gives half of its size (defer.c). */
void budget_ring_begins(const struct prudence_cache *cache, const struct cpu_cache *cpu)
{
    int64_t bytes = budget_charge(cache, cpu, cpu->size);

    add_relaxed(&slab_budgets[cpu->line.cpu].used, bytes);
    add_relaxed(&used_by_all, bytes);
}

/* Whether the rings of all CPUs may hold more than half of latent_limit, as with thousands of caches. */
static bool rings_are_many(void)
{
    uint64_t limit = load_relaxed(&slab_latent_limit);

    return limit && (uint64_t)load_relaxed(&used_by_all) > limit;
}

/* How many objects a cache may hold on each CPU, whatever the budget: fewer when rings are many, so that safe objects
 * in them do not fill latent_limit. */
unsigned budget_least(const struct prudence_cache *cache)
{
    int64_t bytes = (int64_t)min_size((size_t)kept(), (size_t)most_of_a_cpu()) / FLOOR_PART / 2;

    unsigned least = (unsigned)clamp_size((size_t)bytes / cache->stride, 1, cache->size_min);

    return rings_are_many() ? (least + 1) / 2 : least;
}

/* Whether the caches of a CPU may have that size now; a hint, nothing is owned. */
bool budget_allows(const struct prudence_cache *cache, const struct cpu_cache *cpu, unsigned size)
{
    int64_t now = load_relaxed(&slab_budgets[cpu->line.cpu].used);
    int64_t mine = budget_charge(cache, cpu, load_relaxed(&cpu->size));
    int64_t bytes = budget_charge(cache, cpu, size), after = now - mine + bytes;

    return cache->sized || size <= budget_least(cache) ||
           (fits(now - mine, bytes) &&
            (after <= kept() || load_relaxed(&used_by_all) + bytes - mine <= shared()));
}

/* Whether the caches of a CPU may grow before demand says so. */
bool budget_allows_start(const struct prudence_cache *cache, const struct cpu_cache *cpu)
{
    return cpu->size < OS_CACHE_START_BATCHES * cache->batch &&
           load_relaxed(&slab_budgets[cpu->line.cpu].used) < most_of_a_cpu() / START_PART;
}

/* Caches of a CPU get their first arrays: their hits count from now on (give.c). */
static void weigh_from_now(struct cpu_cache *cpu)
{
    store_relaxed(&cpu->worth_pops, (uint32_t)stack_pops(&cpu->line));
    store_relaxed(&cpu->worth_since, load_relaxed(&slab_budgets[cpu->line.cpu].wishes));
}

/* Gives `size`, which is larger than the present one, to the caches of a CPU, which the caller owns. If the budget refuses,
 * gives their floor, but never more than `size`, because the caller has made arrays for that. False: they keep what they
 * have. */
bool budget_grow(const struct prudence_cache *cache, struct cpu_cache *cpu, unsigned size)
{
    if (cache->sized) {
        change_anyway(cache, cpu, size);
    } else if (!raise_cpu(cache, cpu, size)) {
        size = (unsigned)min_size(size, budget_least(cache));
        if (cpu->size >= size)
            return false;
        change_anyway(cache, cpu, size);
    }
    if (OS_CACHES_GIVE && !cpu->size)
        weigh_from_now(cpu);
    store_relaxed(&cpu->size, size); /* read by the idle helper and statistics */
    return true;
}

/* ... a smaller one. */
void budget_shrink(const struct prudence_cache *cache, struct cpu_cache *cpu, unsigned size)
{
    change_anyway(cache, cpu, size);
    store_relaxed(&cpu->size, size);
}
