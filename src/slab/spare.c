/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Spare slabs: what a slab cache keeps free is for all of them (ADR 54).
 *
 * A node keeps the free slabs that were in use within the last one or two windows of decay, because it will want them
 * again. When another slab cache grows in that time, and only by pages that the process does not have yet, it gets
 * the pages of such slabs instead. Otherwise a program that builds up one kind of objects, ends them, and builds up
 * another kind has both in memory. SPARE_BYTES stay untouched, so that small caches that take turns do not remake
 * their slabs.
 *
 * Locks: the place in the list is guarded by slab_caches_lock, which is not held while a cache gives. Such a cache is
 * held by its count of visitors (all_caches.c). No thread waits here, except for a node's lock.
 */
#include "slab/spare.h"

#include "os/os.h"
#include "slab/all_caches.h"
#include "slab/node.h"
#include "slab/tidy.h"

#define SPARE_BYTES ((uint64_t)4 << 20) /* of the process: left alone */
#define GIVEN_BYTES ((size_t)1 << 20)   /* at a time, so that it is worth the visit */
#define WORTH_BYTES ((size_t)256 << 10) /* a cache that has less is passed by */
#define LOOKS       64                  /* at caches */

static struct list *at; /* the cache to look at next; slab_caches_lock. NULL: the first */

/* A cache is about to go off the list, whose lock is held. */
void spare_forget(const struct prudence_cache *cache)
{
    if (at == &cache->link)
        at = NULL;
}

/* As far as is known without the node's lock. The slabs of a window stay in it: their pages serve no other. */
static bool has_spare(const struct prudence_cache *cache, unsigned node)
{
    return !load_relaxed(&cache->window) &&
           load_relaxed(&cache->nodes[node].free_noted) * cache->slab_bytes >= WORTH_BYTES;
}

/* A cache that has free slabs on the node, held; NULL: none was found, or the list is in use. */
static struct prudence_cache *hold_one(unsigned node)
{
    struct prudence_cache *found = NULL;

    if (!os_lock_try(&slab_caches_lock))
        return NULL;
    for (unsigned looks = 0; !found && looks < LOOKS; looks++) {
        struct list *item = at && at != &slab_caches ? at : slab_caches.next;
        struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        if (item == &slab_caches)
            break; /* the list is empty */
        if (has_spare(cache, node))
            found = cache;
        else
            at = item->next;
    }
    if (found)
        cache_hold(found);
    os_lock_release(&slab_caches_lock);
    return found;
}

/* Called before a slab of so many bytes is made on the node. If the page source has no resident page, free slabs of
 * other caches go to it. */
void spare_give(unsigned node, size_t bytes)
{
    struct prudence_cache *cache;

    if (!slab_tidies || likely(node_free_bytes() <= SPARE_BYTES) || os_pages_kept() >= bytes)
        return;
    os_hands_full();
    cache = hold_one(node);
    if (cache) {
        node_shrink_until(&cache->nodes[node], 0, max_size(bytes, GIVEN_BYTES));
        cache_let_go(cache);
    }
    os_hands_empty();
}
