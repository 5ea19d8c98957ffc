/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Early decay: the free slabs of a cache are available to all (ADR 42, ADR 169).
 *
 * A node keeps the free slabs that were in use within the last one or two windows of decay, because
 * it will want them again. When another slab cache grows in that time, some of them go to the page
 * source first, whatever that has. Only there they serve every size, join free pages next to them
 * to longer runs, and no longer count as used (working_set.c). Otherwise a program that builds up
 * objects of one kind, ends them, and builds up another kind would have both in memory.
 *
 * `keep` bytes stay, because a slab that is remade costs about a microsecond. They are few, since
 * free slabs of many kinds are seldom wanted again before they would go. A regret is growth of a
 * cache whose slabs were taken a moment ago, so that KEEP_MOST bytes would have held them. Caches
 * that take turns are such a case. Each byte of regret is kept from then on, up to KEEP_MOST; other
 * growth takes a quarter of its bytes back.
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

/* Policy: when do free slabs serve other sizes? */
#define KEEP_LEAST  ((uint64_t)1 << 20) /* bytes; stay, because a remade slab costs a microsecond */
#define KEEP_MOST   ((uint64_t)4 << 20) /* bytes; stay at most, after regrets */
#define EARLY_BYTES ((size_t)1 << 20)   /* bytes; taken at a time, so that a visit is worth it */
#define WORTH_BYTES ((size_t)256 << 10) /* bytes; a cache that has less is skipped */
#define LOOKS       64                  /* caches; most that one search reads */

/* Free bytes of the process that are not touched, and the bytes that were ever taken. Atomic. The
 * first is a hint: one of two changes at the same time may be lost. */
static uint64_t keep = KEEP_LEAST, taken_ever;

/* The cache to read next, or NULL for the first; under slab_caches_lock. */
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

/* Adapts `keep` to the growth of a cache. */
static void weigh_regret(struct cache_body *body, size_t bytes)
{
    uint64_t kept = load_relaxed(&keep), taken = load_relaxed(&body->early_taken);
    uint64_t now = load_relaxed(&taken_ever);

    if (taken && now - load_relaxed(&body->early_at) <= KEEP_MOST) {
        store_relaxed(&body->early_taken, taken - min_u64(taken, bytes));
        store_relaxed(&body->early_at, now); /* what this growth takes from others does not count */
        store_relaxed(&keep, min_u64(kept + bytes, KEEP_MOST));
    } else {
        store_relaxed(&keep, kept - min_u64(kept - KEEP_LEAST, bytes / 4));
    }
}

static void take_free_slabs(struct prudence_cache *cache, unsigned node)
{
    size_t bytes = node_shrink_until(&cache->body->nodes[node], 0, EARLY_BYTES);

    store_relaxed(&cache->body->early_at, add_relaxed(&taken_ever, bytes) + bytes);
    add_relaxed(&cache->body->early_taken, bytes);
}

/* Called before the cache gets a slab of `bytes` on the node. Free slabs of another cache decay at
 * once if there are many. */
void decay_early(struct prudence_cache *cache, unsigned node, size_t bytes)
{
    struct prudence_cache *other;

    if (!decay_enabled)
        return;
    decay_note_growth(bytes);
    weigh_regret(cache->body, bytes);
    if (likely(node_lists_free_bytes() <= load_relaxed(&keep)))
        return;
    os_hands_full();
    other = hold_one(node);
    if (other) {
        take_free_slabs(other, node);
        cache_let_go(other);
    }
    os_hands_empty();
}
