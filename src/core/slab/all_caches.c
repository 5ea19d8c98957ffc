/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The lists of all slab caches. Cold ones have a list of their own, because they have no objects
 * of their own, and nothing that fork, pressure and decay would read.
 *
 * `slab_caches_lock` guards the lists, and is never held across a wait for a grace period. A thread
 * that reads a cache for longer counts as a visitor of the cache (cache_hold) and releases the
 * lock; the cache's destruction waits for visitors.
 */
#include "slab/all_caches.h"

#include "os/os.h"

struct os_lock slab_caches_lock = OS_LOCK_INIT(OS_RANK_CACHES);
struct list slab_caches = {&slab_caches, &slab_caches};
struct list slab_cold_caches = {&slab_cold_caches, &slab_cold_caches};

/* Where the last search of each list ended: an item of the list, or its head. A walk goes on from
 * there, so it costs one step for each cache. Under the lock. */
static struct list *found_warm = &slab_caches, *found_cold = &slab_cold_caches;

static struct prudence_cache *cache_at(struct list *item)
{
    return list_entry(item, struct prudence_cache, link);
}

/* Returns the first cache above `number`, and leaves *from at the last one that is not. */
static struct prudence_cache *first_after(struct list *caches, struct list **from, uint64_t number)
{
    struct list *item = *from;

    if (item != caches && cache_at(item)->number > number)
        item = caches;
    while (item->next != caches && cache_at(item->next)->number <= number)
        item = item->next;
    *from = item;
    return item->next == caches ? NULL : cache_at(item->next);
}

struct prudence_cache *all_caches_after(uint64_t number)
{
    struct prudence_cache *cache = first_after(&slab_caches, &found_warm, number);
    struct prudence_cache *cold = first_after(&slab_cold_caches, &found_cold, number);

    return cache && (!cold || cache->number < cold->number) ? cache : cold;
}

/* Takes the cache from its list. The caller holds the lock. */
void all_caches_remove(struct prudence_cache *cache)
{
    if (found_warm == &cache->link)
        found_warm = cache->link.previous;
    if (found_cold == &cache->link)
        found_cold = cache->link.previous;
    list_remove(&cache->link);
}

/* Visits all caches that are not cold. */
void all_caches_visit(void (*visit)(struct prudence_cache *cache))
{
    struct list *item;

    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        visit(list_entry(item, struct prudence_cache, link));
    }
    os_lock_release(&slab_caches_lock);
}

/* Returns, held, the cache after `cache` (NULL: the first), or NULL at the end. Lets `cache` go,
 * without the lock. The destroying thread releases the lock while it waits for visitors, so this
 * one can take it. */
struct prudence_cache *all_caches_hold_after(struct prudence_cache *cache)
{
    struct prudence_cache *next = NULL;
    struct list *item;

    os_lock_take(&slab_caches_lock);
    item = cache ? cache->link.next : slab_caches.next;
    if (item != &slab_caches) {
        next = list_entry(item, struct prudence_cache, link);
        cache_hold(next);
    }
    os_lock_release(&slab_caches_lock);
    if (cache)
        cache_let_go(cache);
    return next;
}

/* Waits until the cache has no visitors. The caller holds slab_caches_lock, and has not yet removed
 * the cache from the list. New visitors need that lock; present ones wait only for that lock, a
 * node's lock and the end of a fork. Acquire: the caller sees all that they did. */
void all_caches_wait_for_visitors(const struct prudence_cache *cache)
{
    while (load_acquire(&cache->body->visitors)) {
        os_lock_release(&slab_caches_lock);
        os_sleep_ns(10000);
        os_lock_take(&slab_caches_lock);
    }
}
