/* SPDX-License-Identifier: MIT */
/*
 * Destructors on the worker of callbacks, between callbacks: of objects whose slabs could be freed,
 * of objects that an allocation could not destroy, and of all objects of caches with
 * DESTRUCT_SOON. A turn serves the cache that has waited longest, for a limited number of objects.
 *
 * Only the main worker runs turns. slab_caches_lock guards `destruct_serving`, which keeps that
 * cache from being destroyed (destruct_barrier_until_empty). No lock is held while a destructor
 * runs.
 */
#include "toolkit/callbacks/destruct_worker.h"

#include "slab/all_caches.h"
#include "slab/node.h"
#include "slab/reclaim/drain.h"
#include "toolkit/callbacks/callback_worker.h"
#include "toolkit/callbacks/destruct.h"

#define TURN_MAX 256 /* objects of one cache, before callbacks have their turn */

static struct prudence_cache *destruct_serving; /* by the worker; under slab_caches_lock */
static uint64_t destruct_turns;                 /* number of the worker's turns */
static __thread bool serving_here;

bool destruct_worker_serves(const struct prudence_cache *cache)
{
    bool served;

    os_lock_take(&slab_caches_lock);
    served = destruct_serving == cache && !serving_here;
    os_lock_release(&slab_caches_lock);
    return served;
}

static bool wants_worker(const struct prudence_cache *cache)
{
    const struct destruct_cache *own = destruct_of_cache(cache);

    return own && destruct_pending(cache) &&
           (cache->flags & CACHE_DESTRUCT_SOON || load_relaxed(&own->wanted) ||
            load_relaxed(&own->any));
}

/* Returns the cache that has waited longest, held against destruction; NULL if none has. */
static struct prudence_cache *next_cache(void)
{
    struct prudence_cache *next = NULL;
    struct list *item;

    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        if (wants_worker(cache) &&
            (!next || destruct_of_cache(cache)->turn < destruct_of_cache(next)->turn))
            next = cache;
    }
    destruct_serving = next;
    os_lock_release(&slab_caches_lock);
    return next;
}

static void destruct_worker_let_go(void)
{
    os_lock_take(&slab_caches_lock);
    destruct_serving = NULL;
    os_lock_release(&slab_caches_lock);
}

/* Runs one turn; asks for another one if objects may be left. */
static bool run_turn(struct prudence_cache *cache, bool any_slab)
{
    struct destruct_cache *own = destruct_of_cache(cache);
    unsigned done = 0, some = 1;

    for (; some && done < TURN_MAX; done += some)
        some = destruct_some(cache, any_slab, DESTRUCT_BOTH_EPOCHS);
    if (some)
        store_relaxed(any_slab ? &own->any : &own->wanted, 1u);
    return done > 0;
}

/* Runs destructors of safe objects, then starts the grace period that makes the others safe.
 * Returns whether any ran. */
static bool destruct_worker_serve(struct prudence_cache *cache)
{
    struct destruct_cache *own = destruct_of_cache(cache);
    bool soon = cache->flags & CACHE_DESTRUCT_SOON;
    bool any_slab = __atomic_exchange_n(&own->any, 0u, __ATOMIC_RELAXED) || soon;
    bool some;

    store_relaxed(&own->wanted, 0u);
    own->turn = ++destruct_turns;
    drain_cache(cache, any_slab && !soon);
    some = run_turn(cache, any_slab);
    if (soon && !some && destruct_pending(cache)) {
        drain_cache(cache, true); /* objects that allocations moved to the object caches */
        gp_request(cache->domain, gp_snapshot(cache->domain));
        gp_drive(cache->domain);
    } else if (!soon) {
        node_shrink_to(cache, cache->body->free_limit);
    }
    return some;
}

/* Called by the worker between callbacks. */
static enum callback_turn destruct_worker_turn(void)
{
    struct prudence_cache *cache;
    bool some;

    if (likely(!load_acquire(&destruct_wanted)))
        return CALLBACK_TURN_EMPTY;
    store_relaxed(&destruct_wanted, 0u);
    cache = next_cache();
    if (!cache)
        return CALLBACK_TURN_EMPTY;
    serving_here = true;
    some = destruct_worker_serve(cache);
    serving_here = false;
    destruct_worker_let_go();
    store_relaxed(&destruct_wanted, 1u);
    return some ? CALLBACK_TURN_RAN : CALLBACK_TURN_WAITS;
}

void destruct_worker_start(void)
{
    callbacks_other_work = destruct_worker_turn;
}

/* In a forked child, which has the worker only if the worker forked. */
void destruct_worker_forget(void)
{
    if (!serving_here)
        destruct_serving = NULL;
}
