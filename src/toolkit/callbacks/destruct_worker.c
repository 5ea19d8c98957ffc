/* SPDX-License-Identifier: MIT */
/*
 * Destructors on the worker of callbacks, between callbacks: of objects whose slabs could be freed,
 * of objects that an allocation could not destroy, and of objects of caches with DESTRUCT_SOON. A
 * turn serves the cache that has waited longest, for a limited number of objects.
 *
 * DESTRUCT_SOON: a thread that allocates from the cache destroys objects itself, and cheaper. So
 * the worker reads such a cache every SOON_NS, and takes out of rings only what was there at its
 * last check. Where threads recycle, rings turn round faster than that, and the worker finds
 * nothing, and asks for no grace period.
 *
 * While objects are in rings or slabs of any such cache, the worker watches, and deferrals need not
 * notify it. To stop, it says so, makes all threads fence (membarrier), and checks once more. A
 * deferral that found the worker watching has appended its object before that check. Without
 * membarrier, deferrals fence.
 *
 * Only the main worker runs turns. slab_caches_lock guards `destruct_serving`, which keeps that
 * cache from being destroyed (destruct_barrier_until_empty). No lock is held while a destructor
 * runs.
 */
#include "toolkit/callbacks/destruct_worker.h"

#include "slab/all_caches.h"
#include "slab/cpu_cache.h"
#include "slab/node.h"
#include "slab/reclaim/drain.h"
#include "slab/reclaim/drain_ring.h"
#include "slab/reuse.h"
#include "toolkit/callbacks/callback_life.h"
#include "toolkit/callbacks/callback_worker.h"
#include "toolkit/callbacks/destruct.h"
#include "toolkit/callbacks/destruct_hand.h"

#define TURN_MAX 256 /* objects of one cache, before callbacks have their turn */
#define SOON_NS                                                                                    \
    900000 /* less than a long rest of the worker; between checks of a cache with DESTRUCT_SOON */

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

/* Without `now`, a cache with DESTRUCT_SOON wants the worker even if it was read a moment
 * ago. */
static bool wants_worker(const struct prudence_cache *cache, uint64_t now)
{
    const struct destruct_cache *own = destruct_of_cache(cache);

    if (!own)
        return false;
    if (destruct_pending(cache) && (load_relaxed(&own->wanted) || load_relaxed(&own->any)))
        return true;
    return cache->flags & CACHE_DESTRUCT_SOON && (!now || now - own->looked_at >= SOON_NS) &&
           (drain_any_in_rings(cache) || destruct_pending(cache));
}

/* Returns the cache that has waited longest, held against destruction; NULL if none has. */
static struct prudence_cache *next_cache(uint64_t now)
{
    struct prudence_cache *next = NULL;
    struct list *item;

    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        if (wants_worker(cache, now) &&
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

/* Runs one turn; asks for another one if objects may remain. */
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

/* Moves safe objects to slabs that were in rings at the last check. Returns whether such objects
 * remain. */
static bool take_what_stays(struct prudence_cache *cache)
{
    struct destruct_cache *own = destruct_of_cache(cache);
    bool left = false;

    for (unsigned i = 0; i < os_cpu_count(); i++) {
        const struct cpu_cache *cpu = cpu_cache_of(cache, i);
        uint64_t tail = load_relaxed(&cpu->line.ring_tail);

        if (drain_ring_safe(cache, i, own->tails[i]))
            own->tails[i] = tail;
        else
            left = true; /* the tail stays, so that the next check takes them */
    }
    return left;
}

static void drive(struct prudence_cache *cache)
{
    gp_request(cache->domain, gp_snapshot(cache->domain));
    gp_drive(cache->domain);
}

/* Checks a cache with DESTRUCT_SOON once. Returns whether destructors ran. */
static bool look_at_soon(struct prudence_cache *cache)
{
    struct destruct_cache *own = destruct_of_cache(cache);
    bool old = take_what_stays(cache), some = run_turn(cache, true);

    if (old || drain_any_in_slabs(cache))
        drive(cache);
    if (unlikely(cache->flags & CACHE_POLLS_OBJECTS))
        drain_cache(cache, false);
    own->looked_at = os_clock_ns();
    return some;
}

/* Runs destructors of safe objects. Returns whether any ran. */
static bool destruct_worker_serve(struct prudence_cache *cache)
{
    struct destruct_cache *own = destruct_of_cache(cache);
    bool any_slab = __atomic_exchange_n(&own->any, 0u, __ATOMIC_RELAXED);
    bool some;

    store_relaxed(&own->wanted, 0u);
    own->turn = ++destruct_turns;
    if (cache->flags & CACHE_DESTRUCT_SOON)
        return look_at_soon(cache);
    drain_cache(cache, false);
    some = run_turn(cache, any_slab);
    node_shrink_to(cache, cache->body->free_limit);
    return some;
}

static bool any_to_watch(void)
{
    bool any = next_cache(0) != NULL;

    destruct_worker_let_go();
    return any;
}

/* Stops watching, unless there is something to watch. Returns whether that is so. */
static bool watch_on(void)
{
    if (any_to_watch())
        return true;
    store_relaxed(&destruct_watches, 0u);
    if (load_relaxed(&reuse_watched[1])) {
        store_relaxed(&reuse_watched[1], 0u);
        os_membarrier();
    } else {
        os_full_fence();
    }
    if (!any_to_watch())
        return false;
    destruct_watch();
    return true;
}

/* Called by the worker between callbacks. */
static enum callback_turn destruct_worker_turn(void)
{
    struct prudence_cache *cache;
    bool some;

    if (likely(!load_acquire(&destruct_wanted)))
        return CALLBACK_TURN_EMPTY;
    store_relaxed(&destruct_wanted, 0u);
    cache = next_cache(os_clock_ns());
    if (!cache) {
        if (!watch_on())
            return CALLBACK_TURN_EMPTY;
        store_relaxed(&destruct_wanted, 1u);
        return CALLBACK_TURN_LATER;
    }
    serving_here = true;
    some = destruct_worker_serve(cache);
    serving_here = false;
    destruct_worker_let_go();
    store_relaxed(&destruct_wanted, 1u);
    return some ? CALLBACK_TURN_RAN : CALLBACK_TURN_WAITS;
}

COLD void destruct_worker_start(void)
{
    callbacks_other_work = destruct_worker_turn;
}

/* In a forked child, which has the worker only if the worker forked. */
void destruct_worker_forget(void)
{
    if (serving_here)
        return;
    destruct_serving = NULL;
    destruct_watches = reuse_watched[0] = reuse_watched[1] = 0;
}
