/* SPDX-License-Identifier: MIT */
/* Figures of each cache and totals. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "gp/user/slots.h"
#include "heap/cache_life.h"
#include "heap/heap.h"
#include "pages/pages.h"
#include "process/figures.h"
#include "process/stats.h"
#include "slab/all_caches.h"
#include "slab/double_free.h"
#include "slab/reclaim/budget.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"
#include "slab/stats.h"

/* Every member but the name and the fraction is in the list. */
#define ONE_FIGURE(name)           FIGURE_##name,
#define ONE_COUNTER(name, meaning) FIGURE_##name,
enum { ALL_FIGURES(ONE_COUNTER, ONE_FIGURE) FIGURES };
_Static_assert(sizeof(struct prudence_cache_stats) -
                       offsetof(struct prudence_cache_stats, object_size) ==
                   (FIGURES + 1) * sizeof(uint64_t),
               "slab/figures.h lists the members of struct prudence_cache_stats");

#define COPY_FIGURE(name)           .name = figures.name,
#define COPY_COUNTER(name, meaning) .name = figures.name,

void stats_of_cache(const struct prudence_cache *cache, struct prudence_cache_stats *stats)
{
    struct cache_figures figures;

    stats_figures(cache, &figures);
    *stats = (struct prudence_cache_stats){ALL_FIGURES(COPY_COUNTER, COPY_FIGURE)};
    memcpy(stats->name, cache->name, sizeof stats->name);
    if (stats->objects_live && cache->percpu)
        stats->total_fragmentation = (double)stats->slabs_now * (double)stats->slab_size /
                                     ((double)stats->objects_live * (double)stats->object_size);
}

int prudence_cache_stats_sized(struct prudence_cache *cache, struct prudence_cache_stats *stats,
                               size_t size)
{
    struct prudence_cache_stats all;

    if (!cache || !stats)
        return EINVAL;
    cache_require(cache, "prudence_cache_stats");
    stats_of_cache(cache, &all);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}

#define ADD_FIGURE(name) total->name += stats.name;

static void stats_add_cache(struct prudence_stats *total, const struct prudence_cache *cache)
{
    struct prudence_cache_stats stats;

    stats_of_cache(cache, &stats);
    total->caches++;
    TOTAL_FIGURES(ADD_FIGURE, NO_COUNT, NO_OTHER)
}

static void stats_add_list(struct prudence_stats *total, const struct list *caches)
{
    struct list *item;

    list_for_each(item, caches)
    {
        stats_add_cache(total, list_entry(item, struct prudence_cache, link));
    }
}

/* Reads the pointer, because callback_queue_of() would make the default domain's queue, under a
 * lock. */
uint64_t stats_bytes_called(const struct prudence_domain *domain)
{
    const struct callback_queue *queue = load_acquire(&domain->callbacks);

    return queue ? domain_queue.bytes(queue) : 0;
}

static void add_pages(struct prudence_stats *total, const struct os_pages_stats *pages)
{
    total->slab_bytes = pages->used;
    total->slab_bytes_peak = pages->used_peak;
    total->retained_bytes = pages->retained;
    total->metadata_bytes = pages->metadata;
}

#define TAKE_COUNT(name, word, meaning) total->name = load_relaxed(&(word));

static void stats_add_counts(struct prudence_stats *total)
{
    total->bytes_latent_peak = limit_used_peak();
    total->bytes_named = limit_named();
    total->limit = os_pages_limit();
    total->latent_limit = load_relaxed(&slab_latent_limit);
    total->latent_ceiling = limit_ceiling();
    total->latent_limit_in_force = limit_in_force();
    total->cache_per_cpu = load_relaxed(&slab_cache_per_cpu);
    total->cache_total = load_relaxed(&slab_cache_total);
    total->call_bytes = stats_bytes_called(&prudence_default);
    TOTAL_FIGURES(NO_SUM, TAKE_COUNT, NO_OTHER)
}

bool stats_of_memory_without_locks(struct prudence_stats *total)
{
    struct os_pages_stats pages;
    bool known = pages_try_stats(&pages);

    if (known)
        add_pages(total, &pages);
    stats_add_counts(total);
    return known;
}

/* Copies text into a field of 16 bytes that is already zeroed. */
static void set_text(char field[16], const char *text)
{
    snprintf(field, 16, "%s", text);
}

static void add_grace_periods(struct prudence_stats *total)
{
    struct prudence_domain *domain = &prudence_default;

    total->grace_periods = load_relaxed(&domain->grace_periods);
    total->grace_period_scans = load_relaxed(&domain->scans);
    total->membarriers = load_relaxed(&domain->membarriers);
    total->mode_switches = load_relaxed(&domain->mode_switches);
    total->stalls = load_relaxed(&domain->stalls);
    total->readers = slots_reap(domain, true, READERS_A_FEW);
    set_text(total->percpu, os_percpu_rseq ? "rseq" : "lock");
    snprintf(total->percpu_reason, sizeof total->percpu_reason, "%s",
             os_percpu_why_not ? os_percpu_why_not : "");
    total->doubles_passed_over = double_free_passed_over();
    set_text(total->readers_mode, load_relaxed(&domain->shared.fenced) ? "fenced" : "fence-free");
    set_text(total->membarrier, os_membarrier_available() ? "available" : "missing");
}

int prudence_stats_sized(struct prudence_stats *stats, size_t size)
{
    struct prudence_stats all = {.caches = 0};
    struct os_pages_stats pages;

    if (!stats)
        return EINVAL;
    process_start();
    os_lock_take(&slab_caches_lock);
    stats_add_list(&all, &slab_caches);
    stats_add_list(&all, &slab_cold_caches);
    os_lock_release(&slab_caches_lock);
    os_pages_stats(&pages);
    add_pages(&all, &pages);
    stats_add_counts(&all);
    add_grace_periods(&all);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}

/* Finds the cache with the least number above the walk's. */
int prudence_next_cache_sized(struct prudence_walk *walk, struct prudence_cache_stats *stats,
                              size_t size)
{
    const struct prudence_cache *cache;
    struct prudence_cache_stats all;

    if (!walk || !stats)
        return EINVAL;
    process_start();
    os_lock_take(&slab_caches_lock);
    cache = all_caches_after(walk->after[0]);
    if (cache) {
        walk->after[0] = cache->number;
        stats_of_cache(cache, &all);
    }
    os_lock_release(&slab_caches_lock);
    if (!cache)
        return ENOENT;
    give_sized(stats, size, &all, sizeof all);
    return 0;
}
