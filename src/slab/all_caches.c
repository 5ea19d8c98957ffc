/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The list of all slab caches.
 *
 * `slab_caches_lock` guards the list; it is never held across a wait for a grace period. A thread that looks at a cache for
 * longer holds that cache by its count of visitors (cache_hold), and releases the lock; the cache's destruction waits for it.
 */
#include "slab/all_caches.h"

#include "os/os.h"

struct os_lock slab_caches_lock = OS_LOCK_INIT(OS_RANK_CACHES);
struct list slab_caches = {&slab_caches, &slab_caches};

void for_all_caches(void (*visit)(struct prudence_cache *cache))
{
    struct list *item;

    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        visit(list_entry(item, struct prudence_cache, link));
    }
    os_lock_release(&slab_caches_lock);
}

/* Before the cache goes off the list, whose lock is held: until nobody holds it. Visitors come under the lock only, and wait
 * for nothing but a node's lock, and the end of a fork. Acquire: what they did is done. */
void cache_wait_for_visitors(const struct prudence_cache *cache)
{
    while (load_acquire(&cache->visitors)) {
        os_lock_release(&slab_caches_lock);
        os_sleep_ns(10000);
        os_lock_take(&slab_caches_lock);
    }
}
