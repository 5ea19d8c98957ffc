/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Early decay: the free slabs of a cache are available to all (ADR 42).
 *
 * A node keeps the free slabs that were in use within the last one or two windows of decay, because
 * it will want them again. If another slab cache has to grow in that time, and could do so only by
 * pages that the process does not have yet, it gets the pages of such slabs instead. Otherwise a
 * program that builds up objects of one kind, ends them, and builds up another kind would have both
 * in memory. KEPT_BYTES stay untouched, so that small caches that take turns do not remake their
 * slabs.
 *
 * Locks: slab_caches_lock guards the place in the list, and is not held while a cache shrinks. The
 * count of visitors holds that cache (all_caches.c). No thread waits here, except for a node's
 * lock.
 */
#include "slab/reclaim/decay_early.h"

#include "os/os.h"
#include "slab/all_caches.h"
#include "slab/node.h"
#include "slab/reclaim/decay.h"

#define KEPT_BYTES  ((uint64_t)4 << 20) /* free bytes of the process that are left alone */
#define EARLY_BYTES ((size_t)1 << 20)   /* taken at a time, so that a visit is worth it */
#define WORTH_BYTES ((size_t)256 << 10) /* a cache that has less is skipped */
#define LOOKS       64                  /* caches to look at */

/* The cache to look at next, or NULL for the first; under slab_caches_lock. */
static struct list *at;

/* Called under slab_caches_lock before a cache leaves the list. */
void decay_early_forget(const struct prudence_cache *cache)
{
    if (at == &cache->link)
        at = NULL;
}

/* Returns whether a cache seems to have free slabs, without the node's lock. Slabs of a window
 * stay, because their pages serve no other cache. */
static bool has_free_slabs(const struct prudence_cache *cache, unsigned node)
{
    return !load_relaxed(&cache->body->window) &&
           load_relaxed(&cache->body->nodes[node].free_noted) * cache->body->slab_bytes >=
               WORTH_BYTES;
}

/* Returns, held, a cache with free slabs on the node, or NULL if none was found or the list is in
 * use. */
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
        if (has_free_slabs(cache, node))
            found = cache;
        else
            at = item->next;
    }
    if (found)
        cache_hold(found);
    os_lock_release(&slab_caches_lock);
    return found;
}

/* Called before a slab of `bytes` is made on the node. If the page source has no resident pages for
 * it, free slabs of another cache decay at once. */
void decay_early(unsigned node, size_t bytes)
{
    struct prudence_cache *cache;

    if (!decay_enabled || likely(node_lists_free_bytes() <= KEPT_BYTES) || os_pages_kept() >= bytes)
        return;
    os_hands_full();
    cache = hold_one(node);
    if (cache) {
        node_shrink_until(&cache->body->nodes[node], 0, max_size(bytes, EARLY_BYTES));
        cache_let_go(cache);
    }
    os_hands_empty();
}
