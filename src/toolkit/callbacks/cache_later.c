/* SPDX-License-Identifier: MIT */
/*
 * Caches that end where nothing may wait for them: in destructors of C++ and Rust, whose authors
 * cannot choose the place. A table may be an element of a table.
 *
 * The cache has room for the head of a callback in its own domain. When that runs, everything that
 * was deferred before has had a grace period. If objects still wait then, because their batch was
 * closed later, their destructor is about to run elsewhere or a hazard pointer names them, the
 * callback queues itself anew, so it never waits in the thread of callbacks. That thread pauses
 * before the next try. No other thread uses a cache that is to end.
 */
#include <errno.h>

#include <prudence/call.h>

#include "gp/user/domain.h"
#include "gp/user/may_wait.h"
#include "heap/cache_life.h"
#include "heap/caches.h"
#include "slab/cache.h"
#include "slab/misuse.h"
#include "slab/reclaim/drain.h"
#include "toolkit/callbacks/callback_life.h"
#include "toolkit/callbacks/callback_worker.h"
#include "toolkit/callbacks/destruct.h"
#include "toolkit/callbacks/may_wait.h"
#include "toolkit/domains/hazard_slots.h"

static const char what[] = "prudence_cache_destroy_later";

_Static_assert(sizeof(struct prudence_head) == sizeof(((struct prudence_cache *)NULL)->later),
               "room for the head");

/* A movable slot that names something counts as this thread's, although another thread may have it:
 * then the cache ends later for no reason. */
static bool cache_may_end_now(const struct prudence_cache *cache)
{
    if (cache->flags & CACHE_POLLS_OBJECTS && hazard_slots_thread_may_name())
        return false;
    if (cache_body_of(cache)->destructor)
        return !destruct_here() && gp_may_wait();
    return gp_may_wait_for(cache->domain);
}

/* Runs the destructors of safe objects. Returns whether none waits for readers any more. */
static bool is_settled(struct prudence_cache *cache)
{
    if (cache_is_cold(cache))
        return true; /* the objects that wait are in slabs of others */
    drain_cache(cache, true);
    if (cache->body->destructor) {
        while (destruct_some(cache, true, DESTRUCT_BOTH_EPOCHS))
            ;
        drain_cache(cache, true);
        if (destruct_pending(cache))
            return false;
    }
    return !drain_leaves_latent(cache);
}

static void end_or_wait(struct prudence_head *head);

/* Queues the callback in a domain whose grace periods the library ends by itself, and returns that
 * domain. If it is not the cache's, the cache's objects have to be read now and then. */
static struct prudence_domain *call_later(struct prudence_cache *cache)
{
    struct prudence_domain *domain = cache->domain;

    if (domain->kind == PRUDENCE_DOMAIN_HAZARD || domain->kind == PRUDENCE_DOMAIN_SET)
        domain = &prudence_default;
    prudence_domain_call(domain, (struct prudence_head *)cache->later, end_or_wait);
    return domain;
}

static void end_or_wait(struct prudence_head *head)
{
    struct prudence_cache *cache =
        (struct prudence_cache *)((char *)head - offsetof(struct prudence_cache, later));

    if (is_settled(cache))
        caches_destroy(cache, what, __builtin_return_address(0));
    else
        callback_worker_note_vain(callback_queue_of(call_later(cache)));
}

int prudence_cache_destroy_later(struct prudence_cache *cache)
{
    if (!cache)
        return EINVAL;
    cache_require(cache, what);
    if (os_lock_forking || cache_may_end_now(cache))
        return caches_destroy(cache, what, __builtin_return_address(0));
    drain_cache(cache, false); /* closes the batches, so that their grace period begins */
    call_later(cache);
    return 0;
}
