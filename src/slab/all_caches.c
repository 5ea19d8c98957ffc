/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The list of all slab caches.
 *
 * `slab_caches_lock` guards the list, and is never held across a wait for a grace period. A thread
 * that looks at a cache for longer counts as a visitor of the cache (cache_hold) and releases the
 * lock; the cache's destruction waits for visitors.
 */
#include "slab/all_caches.h"

#include "os/os.h"

struct os_lock slab_caches_lock = OS_LOCK_INIT(OS_RANK_CACHES);
struct list slab_caches = {&slab_caches, &slab_caches};

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

/* Waits until the cache has no visitors. The caller holds slab_caches_lock, and has not yet removed
 * the cache from the list. New visitors need that lock; present ones wait only for that lock, a
 * node's lock and the end of a fork. Acquire: the caller sees all that they did. */
void all_caches_wait_for_visitors(const struct prudence_cache *cache)
{
    while (load_acquire(&cache->visitors)) {
        os_lock_release(&slab_caches_lock);
        os_sleep_ns(10000);
        os_lock_take(&slab_caches_lock);
    }
}
