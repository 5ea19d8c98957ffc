/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Slab caches on a CPU share its budget (budget.c). When it is used up, one shrinks for another.
 *
 * A cache that wants to grow asks the next few caches in use on the CPU. The cache with the fewest
 * recent hits for its bytes loses half of its size, if the asker has had twice as many. A hand for
 * each CPU goes round the list of all caches, so each is asked in turn. Hits are divided by their
 * time, counted in wishes to grow on that CPU; now and then, when a cache is asked, half of both is
 * forgotten. Two equally used caches keep their sizes. When no cache shrank, none is asked for a
 * while.
 *
 * The count of visitors holds the victim (all_caches.c), so the list's lock is held only for the
 * checks, and only tried. A thread on that CPU owns the victim's caches for a batch of objects at a
 * time, so this needs no membarrier.
 */
#include "slab/reclaim/budget_share.h"

#include "os/os.h"
#include "slab/all_caches.h"
#include "slab/cpu_cache.h"
#include "slab/reclaim/budget.h"
#include "slab/reclaim/drain.h"

/* Policy: which cache shrinks when a CPU's budget is used up? */
#define ASKED      8   /* caches; in use there, of which the least used for its bytes shrinks */
#define LOOKS      64  /* caches; most of the list that are read */
#define WORTH      2   /* factor; by which the asker's hits for a byte exceed the victim's */
#define REMEMBERED 16  /* misses; least wishes before hits are halved */
#define PAUSE_MAX  255 /* tries; most growths in a row that are not made, without asking */

COLD void budget_share_start(void)
{
    for (unsigned cpu = 0; cpu < os_cpu_count(); cpu++)
        slab_budgets[cpu].hand = &slab_caches;
}

/* Called under slab_caches_lock before a cache leaves the list. */
void budget_share_forget(const struct prudence_cache *cache)
{
    for (unsigned cpu = 0; cpu < os_cpu_count(); cpu++)
        if (slab_budgets[cpu].hand == &cache->link)
            slab_budgets[cpu].hand = cache->link.next;
}

static uint32_t now_on(unsigned cpu)
{
    return load_relaxed(&slab_budgets[cpu].wishes);
}

/* Returns recent hits, for each byte that the caches may hold and each unit of time. */
static uint64_t worth(const struct prudence_cache *cache, const struct cpu_cache *cpu)
{
    uint64_t hits = (uint32_t)stack_pops(&cpu->line) - load_relaxed(&cpu->worth_pops);
    uint64_t time = (uint64_t)(now_on(cpu->line.cpu) - load_relaxed(&cpu->worth_since)) + 1;
    uint64_t bytes = (uint64_t)budget_charge(cache, cpu, load_relaxed(&cpu->size));

    return (hits << 30) / (max_size(bytes >> 10, 1) * time);
}

/* Forgets half of the hits and half of their time, if that was long enough. */
static void note_asked(struct cpu_cache *cpu)
{
    uint32_t pops = load_relaxed(&cpu->worth_pops), since = load_relaxed(&cpu->worth_since);
    uint32_t time = now_on(cpu->line.cpu) - since;

    if (time < REMEMBERED)
        return;
    store_relaxed(&cpu->worth_pops, pops + ((uint32_t)stack_pops(&cpu->line) - pops) / 2);
    store_relaxed(&cpu->worth_since, since + time / 2);
}

static bool can_shrink(const struct prudence_cache *cache, const struct cpu_cache *cpu)
{
    return !cache->body->sized && load_relaxed(&cpu->size) > budget_least(cache);
}

/* Returns the next cache, or NULL at the end of a round. */
static struct prudence_cache *turn_hand(struct cpu_budget *budget)
{
    struct list *item = budget->hand;

    budget->hand = item->next;
    return item == &slab_caches ? NULL : list_entry(item, struct prudence_cache, link);
}

/* Returns, held, the least used of the next few caches, or NULL if none is below `most`. The caller
 * holds the list's lock. */
static struct prudence_cache *budget_share_ask(const struct prudence_cache *asker, unsigned cpu,
                                               uint64_t most)
{
    struct prudence_cache *victim = NULL, *cache;
    unsigned asked = 0;

    for (unsigned i = 0; i < LOOKS && asked < ASKED; i++) {
        struct cpu_cache *caches;
        uint64_t has;

        cache = turn_hand(&slab_budgets[cpu]);
        if (!cache || cache == asker || !cache->percpu)
            continue;
        caches = cpu_cache_of(cache, cpu);
        if (!load_relaxed(&caches->slots))
            continue;
        asked++;
        has = worth(cache, caches);
        note_asked(caches);
        if (!can_shrink(cache, caches) || has >= most)
            continue;
        most = has;
        victim = cache;
    }
    if (victim)
        cache_hold(victim);
    return victim;
}

static bool halve(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    unsigned half = load_relaxed(&cpu->size) / 2;

    return drain_to_size(cache, cpu, (unsigned)max_size(half, budget_least(cache)));
}

/* Returns, held, a cache that is to shrink, or NULL if there is none or the list is in use. */
static struct prudence_cache *hold_victim(const struct prudence_cache *asker, unsigned cpu)
{
    struct prudence_cache *victim;

    if (!os_lock_try(&slab_caches_lock))
        return NULL;
    victim = budget_share_ask(asker, cpu, worth(asker, cpu_cache_of(asker, cpu)) / WORTH);
    os_lock_release(&slab_caches_lock);
    return victim;
}

static bool try_to_shrink_one(struct prudence_cache *asker, unsigned cpu)
{
    struct prudence_cache *victim = hold_victim(asker, cpu);
    bool shrunk;

    if (!victim)
        return false;
    shrunk = halve(victim, cpu_cache_of(victim, cpu));
    cache_let_go(victim);
    return shrunk;
}

/* Shrinks other caches for a cache that wants `size` on the current CPU, where the budget is
 * used up. Nothing is owned. */
void budget_share_for(struct prudence_cache *cache, unsigned size)
{
    unsigned cpu = os_cpu_current();
    struct cpu_budget *budget = &slab_budgets[cpu];
    uint32_t pause = load_relaxed(&budget->pause);

    store_relaxed(&budget->wishes, now_on(cpu) + 1);
    if (pause) {
        store_relaxed(&budget->pause, pause - 1);
        return;
    }
    while (!budget_allows(cache, cpu_cache_of(cache, cpu), size)) {
        uint32_t in_vain = load_relaxed(&budget->in_vain);

        if (!try_to_shrink_one(cache, cpu)) {
            in_vain = (uint32_t)min_size(2 * (size_t)in_vain + 1, PAUSE_MAX);
            store_relaxed(&budget->in_vain, in_vain);
            store_relaxed(&budget->pause, in_vain);
            return;
        }
        store_relaxed(&budget->in_vain, 0u);
    }
}

/* Called after the first deferral of a cache on this CPU, when the ring begins to count. If the
 * budget does not allow that, object cache and ring each lose half of their size. Nothing is
 * owned. */
void budget_share_halve(struct prudence_cache *cache)
{
    struct cpu_cache *cpu = cpu_cache_of(cache, os_cpu_current());

    if (can_shrink(cache, cpu) && !budget_allows(cache, cpu, load_relaxed(&cpu->size)))
        halve(cache, cpu);
}
