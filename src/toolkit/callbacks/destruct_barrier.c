/* SPDX-License-Identifier: MIT */
/*
 * Waits for the destructors of one cache.
 *
 * An object with a pending destructor may be anywhere: in a ring, in a slab, held by a
 * thread that moves the object or runs the destructor. So a barrier does not search for all
 * objects. It first moves those in rings to slabs, and they are counted when they leave the ring,
 * whoever takes them. Then it waits for the count, from which an object is subtracted when the
 * destructor has returned. There are two counts, for two epochs, and each object adds to the
 * present epoch's count. A barrier begins a new epoch, waits until the old count is 0, and does the
 * same once more. So the barrier has seen each count at 0 after it began, in whichever an object
 * counts, which is all that the promise needs. Two counts ensure progress: however many others
 * defer, the count that a barrier waits for grows only by threads that read the epoch just before.
 * One barrier at a time changes epochs; barriers that wait for that one share the next.
 *
 * No lock is held during a wait. The holder of `barrier_runner` (by compare-and-swap) changes
 * epochs. The cache outlives the wait because the caller has it.
 */
#include "toolkit/callbacks/destruct_barrier.h"

#include "race_detector.h"
#include "gp/gp_wait.h"
#include "slab/cpu_cache.h"
#include "slab/node.h"
#include "slab/reclaim/drain.h"
#include "slab/reclaim/drain_ring.h"
#include "toolkit/callbacks/destruct.h"
#include "toolkit/callbacks/destruct_hand.h"
#include "toolkit/callbacks/destruct_worker.h"
#include "toolkit/domains/named.h"

#define BARRIER_NS   20000 /* between checks of destructors that other threads run */
#define EPOCH_SET(e) (1u << (e))

/* Moves what is in the rings now to slabs, or sees that it has gone. */
static bool empty_rings(struct prudence_cache *cache, uint64_t deadline)
{
    for (unsigned i = 0; i < os_cpu_count(); i++) {
        const struct cpu_cache *cpu = cpu_cache_of(cache, i);
        uint64_t tail = load_relaxed(&cpu->line.ring_tail);

        while (!drain_ring(cache, i, tail)) {
            if (deadline && os_clock_ns() >= deadline)
                return false;
            os_sleep_ns(BARRIER_NS);
        }
    }
    return true;
}

/* Waits until no destructor of the epoch is pending. Objects that this thread cannot destroy are
 * latent, or another thread has them. */
static bool wait_for_epoch(struct prudence_cache *cache, unsigned epoch, uint64_t deadline)
{
    const uint64_t *pending = &destruct_of_cache(cache)->pending[epoch];
    const bool by_object = cache->flags & CACHE_POLLS_OBJECTS;
    struct named_stall stall UNINITIALIZED;

    stall.begun = false;
    while (load_acquire(pending)) {
        if (deadline && os_clock_ns() >= deadline)
            return false;
        node_shrink_to(cache, cache->body->free_limit); /* merges */
        if (unlikely(by_object))
            drain_cache(cache, false);
        if (destruct_some(cache, true, EPOCH_SET(epoch)))
            continue;
        if (drain_any_in_slabs(cache))
            gp_wait_for_sections(cache->domain, gp_snapshot(cache->domain), deadline, false);
        if (unlikely(by_object))
            named_note(cache, &stall);
        if (load_acquire(pending))
            os_sleep_ns(BARRIER_NS);
    }
    return true;
}

static bool wait_for_both_epochs(struct prudence_cache *cache, uint64_t deadline)
{
    bool over = true;

    for (unsigned i = 0; i < 2 && over; i++)
        over = wait_for_epoch(cache, add_relaxed(&destruct_of_cache(cache)->pending_epoch, 1) & 1,
                              deadline);
    return over;
}

/* Any barrier that begins after this call is enough. The fences order a caller that sees that none
 * has begun: that barrier finds its objects in the rings, or counted. A barrier that gives
 * up ends none, so those that wait for it begin another. */
bool destruct_barrier(struct prudence_cache *cache, uint64_t deadline)
{
    struct destruct_cache *own = destruct_of_cache(cache);
    uint64_t goal, begun;
    bool over = true;

    os_full_fence();
    goal = load_acquire(&own->barriers_begun) + 1;
    while (over && (int64_t)(load_acquire(&own->barriers_ended) - goal) < 0) {
        uintptr_t nobody = 0;

        if (!compare_exchange(&own->barrier_runner, &nobody, (uintptr_t)&destruct_runs)) {
            os_sleep_ns(BARRIER_NS);
            over = !deadline || os_clock_ns() < deadline;
            continue;
        }
        begun = add_relaxed(&own->barriers_begun, 1) + 1;
        os_full_fence();
        over = empty_rings(cache, deadline) && wait_for_both_epochs(cache, deadline);
        if (over)
            store_release(&own->barriers_ended, begun);
        store_release(&own->barrier_runner, (uintptr_t)0);
    }
    if (over)
        tell_acquire(cache);
    return over;
}

/* Waits for the worker last, because the worker picks up no cache without pending objects. */
void destruct_barrier_until_empty(struct prudence_cache *cache)
{
    while (drain_any_in_rings(cache) || destruct_pending(cache))
        destruct_barrier(cache, 0);
    while (destruct_worker_serves(cache))
        os_sleep_ns(BARRIER_NS);
}
