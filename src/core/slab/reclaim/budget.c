/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A budget bounds the bytes that the object caches and rings of all slab caches may hold on a CPU.
 *
 * A slab cache is charged for the objects that it may hold, size x stride, rather than for those
 * that it holds. After the first deferral on the CPU the charge doubles, because `size` limits both
 * object cache and ring. So fast paths count nothing, and the bound holds at any time. Only the
 * owner of the caches changes a size, and only here. A size grows (alloc.c, weigh) while
 *   - all sizes of the CPU stay within cache_per_cpu. A slab cache that is nearly alone there may
 *     have twice as much, so that a cache of large objects has a thousand of them; and
 *   - all CPUs stay within cache_total. A quarter of that is divided equally, so that one CPU's
 *     caches cannot use up another's. A CPU exceeds its part only while all together use less than
 *     the rest.
 * A cache begins with a few objects and doubles at each miss, up to a size that serves a batch
 * well. Caches double by themselves only while a quarter of the budget suffices; the rest is for
 * demand. When the CPU's budget is used up, other caches shrink (budget_share.c). Only these exceed
 * it:
 *   - floors. A slab cache that is used may have a 256th of the bytes guaranteed to the CPU, at
 *     most its first size, and at least one object. When rings are many, half of that;
 *   - caches whose creator set a size (object_cache_bytes). They count, too;
 *   - a ring's first deferral, until the cache has lost half of its size (budget_share_halve).
 *
 * Any thread may call these functions. A sum changes just before the size does.
 */
#include "slab/reclaim/budget.h"

#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/cpu_cache.h"
#include "slab/reclaim/limit.h"

/* Policy: how many objects may a CPU keep? */
#define NEARLY_ALONE 8   /* part; of the budget, the most that all others have together */
#define ALONE_MORE   2   /* factor; on the budget, for that cache */
#define START_PART   4   /* part; of the budget, for the first caches */
#define FLOOR_PART   256 /* part; of a CPU's bytes, which a used cache has in any case */
#define KEPT_PART    4   /* part; of the total, kept for all CPUs alike */

uint64_t slab_cache_per_cpu READ_MOSTLY = OS_CACHE_PER_CPU;
uint64_t slab_cache_total READ_MOSTLY = OS_CACHE_TOTAL;
struct cpu_budget *slab_budgets READ_MOSTLY = NULL;

/* Sum over all CPUs; written when a size changes, so it has cache lines of its own. */
static struct used {
    int64_t bytes;
} __attribute__((aligned(CACHE_LINES_APART))) used_by_all;

COLD bool budget_start(void)
{
    slab_budgets = os_meta_alloc(os_cpu_count() * sizeof *slab_budgets);
    return slab_budgets != NULL;
}

/* Called when no cache remains. */
void budget_stop(void)
{
    if (slab_budgets)
        os_meta_free(slab_budgets, os_cpu_count() * sizeof *slab_budgets);
    slab_budgets = NULL;
    used_by_all.bytes = 0;
}

/* Returns the charge of a CPU's caches at that size. */
int64_t budget_charge(const struct prudence_cache *cache, const struct cpu_cache *cpu,
                      unsigned size)
{
    size_t bytes = (size_t)size * cache->body->stride;

    return (int64_t)(load_relaxed(&cpu->line.ring_tail) ? 2 * bytes : bytes);
}

/* Returns the bytes that each CPU may use, whatever the others do. */
static int64_t kept_for_a_cpu(void)
{
    return (int64_t)(load_relaxed(&slab_cache_total) / KEPT_PART / os_cpu_count());
}

static int64_t most_of_a_cpu(void)
{
    return (int64_t)load_relaxed(&slab_cache_per_cpu);
}

static bool fits_a_cpu(int64_t others, int64_t bytes)
{
    return others + bytes <= most_of_a_cpu() ||
           (others <= most_of_a_cpu() / NEARLY_ALONE && bytes / ALONE_MORE <= most_of_a_cpu());
}

/* Returns the bytes that all CPUs may use together when one exceeds kept_for_a_cpu(). */
static int64_t shared_bytes(void)
{
    uint64_t total = load_relaxed(&slab_cache_total);

    return (int64_t)(total - total / KEPT_PART);
}

/* Raises the total by `change`, after which the CPU uses `after`. Returns false if the total does
 * not allow it. */
static bool raise_total(int64_t after, int64_t change)
{
    int64_t now = load_relaxed(&used_by_all.bytes);

    do {
        if (after > kept_for_a_cpu() && change > shared_bytes() - now)
            return false;
    } while (!compare_exchange(&used_by_all.bytes, &now, now + change));
    return true;
}

static bool raise_cpu(const struct prudence_cache *cache, const struct cpu_cache *cpu,
                      unsigned size)
{
    int64_t *used = &slab_budgets[cpu->line.cpu].used, now = load_relaxed(used);
    int64_t mine = budget_charge(cache, cpu, cpu->size), bytes = budget_charge(cache, cpu, size);

    do {
        if (!fits_a_cpu(now - mine, bytes))
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
    add_relaxed(&used_by_all.bytes, change);
}

/* Called by the owner before the first deferral of a cache on a CPU. If that exceeds the budget,
 * the cache loses half of its size (defer.c). */
void budget_ring_begins(const struct prudence_cache *cache, const struct cpu_cache *cpu)
{
    int64_t bytes = budget_charge(cache, cpu, cpu->size);

    add_relaxed(&slab_budgets[cpu->line.cpu].used, bytes);
    add_relaxed(&used_by_all.bytes, bytes);
}

/* Returns whether the rings of all CPUs may hold more than half of latent_limit, as with thousands
 * of caches. */
static bool rings_are_many(void)
{
    uint64_t limit = load_relaxed(&slab_latent_limit);

    return limit && (uint64_t)load_relaxed(&used_by_all.bytes) > limit;
}

/* Returns the number of objects that a cache may hold on each CPU, whatever the budget. When rings
 * are many it is smaller, so that safe objects in them do not fill latent_limit. */
unsigned budget_least(const struct prudence_cache *cache)
{
    int64_t bytes =
        (int64_t)min_size((size_t)kept_for_a_cpu(), (size_t)most_of_a_cpu()) / FLOOR_PART / 2;

    unsigned least =
        (unsigned)clamp_size((size_t)bytes / cache->body->stride, 1, cache->body->size_min);

    return rings_are_many() ? (least + 1) / 2 : least;
}

/* Returns whether the caches of a CPU may have that size now. This is a hint, because nothing is
 * owned. */
bool budget_allows(const struct prudence_cache *cache, const struct cpu_cache *cpu, unsigned size)
{
    int64_t now = load_relaxed(&slab_budgets[cpu->line.cpu].used);
    int64_t mine = budget_charge(cache, cpu, load_relaxed(&cpu->size));
    int64_t bytes = budget_charge(cache, cpu, size), after = now - mine + bytes;

    return cache->body->sized || size <= budget_least(cache) ||
           (fits_a_cpu(now - mine, bytes) &&
            (after <= kept_for_a_cpu() ||
             load_relaxed(&used_by_all.bytes) + bytes - mine <= shared_bytes()));
}

/* Returns whether the caches of a CPU may grow before demand asks for it. */
bool budget_allows_start(const struct prudence_cache *cache, const struct cpu_cache *cpu)
{
    return cpu->size < OS_CACHE_START_BATCHES * cache->body->batch &&
           load_relaxed(&slab_budgets[cpu->line.cpu].used) < most_of_a_cpu() / START_PART;
}

/* Counts hits from now on (budget_share.c), when caches of a CPU get their first arrays. */
static void weigh_from_now(struct cpu_cache *cpu)
{
    store_relaxed(&cpu->worth_pops, (uint32_t)stack_pops(&cpu->line));
    store_relaxed(&cpu->worth_since, load_relaxed(&slab_budgets[cpu->line.cpu].wishes));
}

/* Raises the size of caches that the caller owns. If the budget refuses, raises it to the floor,
 * but at most to `size`, because the caller has made arrays for that. Returns false if the size
 * stays. */
bool budget_grow(const struct prudence_cache *cache, struct cpu_cache *cpu, unsigned size)
{
    if (cache->body->sized) {
        change_anyway(cache, cpu, size);
    } else if (!raise_cpu(cache, cpu, size)) {
        size = (unsigned)min_size(size, budget_least(cache));
        if (cpu->size >= size)
            return false;
        change_anyway(cache, cpu, size);
    }
    if (OS_BUDGET_IS_SHARED && !cpu->size)
        weigh_from_now(cpu);
    store_relaxed(&cpu->size, size); /* read by the idle helper and statistics */
    return true;
}

/* Lowers the size of caches that the caller owns. */
void budget_shrink(const struct prudence_cache *cache, struct cpu_cache *cpu, unsigned size)
{
    change_anyway(cache, cpu, size);
    store_relaxed(&cpu->size, size);
}
