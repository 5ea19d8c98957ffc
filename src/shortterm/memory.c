/* SPDX-License-Identifier: MIT */
/* Allocation functions with the names of the thesis; scm_get_mem_info and scm_get_region_info. */
#include "member_parts.h"
#include "shortterm/scm.h"
#include "slab/all_caches.h"
#include "slab/stats.h"

/* Frees a few expired objects when memory is wanted, so that the memory is reused at once. */
static inline void collect_for_more(void)
{
    struct scm_thread *self = scm_self;

    if (self)
        collect_some(self);
}

void *scm_malloc(size_t size)
{
    collect_for_more();
    return prudence_malloc(size);
}

void *scm_calloc(size_t count, size_t size)
{
    collect_for_more();
    return prudence_calloc(count, size);
}

void *scm_realloc(void *object, size_t size)
{
    return prudence_realloc(object, size);
}

void scm_free(void *object)
{
    object_free(slab_of(object), OBJECT_ANY_CACHE, false, object, "scm_free");
}

static void mem_info_add_cache(struct scm_mem_info *info, const struct prudence_cache *cache)
{
    struct cache_sums sums;

    slab_stats_sum(cache, &sums);
    info->num_alloc += sums.hits + sums.misses;
    info->num_freed += sums.frees + sums.deferred;
    if (cache->percpu) {
        info->allocated += (sums.hits + sums.misses) * cache->body->stride;
        info->freed += (sums.frees + sums.deferred) * cache->body->stride;
    } else {
        info->allocated += load_relaxed(&cache->body->large_grown);
        info->freed += load_relaxed(&cache->body->large_shrunk);
    }
}

static void mem_info_add_list(struct scm_mem_info *info, const struct list *caches)
{
    struct list *item;

    list_for_each(item, caches)
    {
        const struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        if (cache != pages_cache())
            mem_info_add_cache(info, cache);
    }
}

static void mem_info_add_counts(struct scm_mem_info *info, const struct scm_counts *counts,
                                const uint64_t *begin)
{
    /* Read the counts of ends first, so that no difference is below the truth. Acquire order pairs
     * with page_end. */
    uint64_t ended = load_relaxed(&counts->ended);
    uint64_t taken = load_acquire(&counts->taken) + (begin ? load_relaxed(begin) : 0);

    info->num_short_term += load_relaxed(&counts->became) - ended;
    info->num_expired += load_relaxed(&counts->expired) - taken;
    info->num_dates += load_relaxed(&counts->dates) - taken;
    info->num_collected += ended - load_relaxed(&counts->kept);
    info->overhead += (uint64_t)load_relaxed(&counts->pages) * PAGE_BYTES;
}

static void add_thread(struct scm_mem_info *info, const struct scm_thread *thread)
{
    mem_info_add_counts(info, &thread->counts, &thread->begin);
}

static void count_memory(struct scm_mem_info *info)
{
    struct list *item;

    process_start();
    *info = (struct scm_mem_info){.allocated = 0};
    os_lock_take(&scm_lock);
    scm_threads_reap();
    info->overhead = load_relaxed(&scm_meta_bytes) + expiry_counts_bytes();
    mem_info_add_counts(info, &scm_gone, NULL);
    list_for_each(item, &scm_threads)
    {
        add_thread(info, list_entry(item, struct scm_thread, link));
        info->threads++;
    }
    list_for_each(item, &scm_orphans)
    {
        add_thread(info, list_entry(item, struct scm_thread, link));
    }
    os_lock_release(&scm_lock);
    os_lock_take(&slab_caches_lock);
    mem_info_add_list(info, &slab_caches);
    mem_info_add_list(info, &slab_cold_caches);
    os_lock_release(&slab_caches_lock);
}

int scm_get_mem_info_sized(struct scm_mem_info *info, size_t size)
{
    struct scm_mem_info all;

    if (!info)
        return EINVAL;
    count_memory(&all);
    give_sized(info, size, &all, sizeof all);
    return 0;
}

static void add_regions(struct scm_region_info *info, const struct scm_counts *counts)
{
    info->regions += (uint64_t)load_relaxed(&counts->regions);
    info->bytes += (uint64_t)load_relaxed(&counts->region_bytes);
}

static void count_regions(struct scm_region_info *info)
{
    struct list *item;

    process_start();
    *info = (struct scm_region_info){.regions = 0};
    os_lock_take(&scm_lock);
    add_regions(info, &scm_gone);
    list_for_each(item, &scm_threads)
    {
        add_regions(info, &list_entry(item, struct scm_thread, link)->counts);
    }
    list_for_each(item, &scm_orphans)
    {
        add_regions(info, &list_entry(item, struct scm_thread, link)->counts);
    }
    os_lock_release(&scm_lock);
}

int scm_get_region_info_sized(struct scm_region_info *info, size_t size)
{
    struct scm_region_info all;

    if (!info)
        return EINVAL;
    count_regions(&all);
    give_sized(info, size, &all, sizeof all);
    return 0;
}

const struct statistics_part scm_statistics_part = {.memory = scm_get_mem_info,
                                                    .regions = scm_get_region_info};
ENTER(statistics_parts, scm_statistics_part);
