/* SPDX-License-Identifier: MIT */
/*
 * Waits for readers that name deferred objects of one cache, in domains whose readers name single
 * objects (CACHE_POLLS_OBJECTS).
 *
 * After a barrier, an object that was deferred before is safe unless a slot names it (hazard.c). So
 * the wait is over when each slot that named such an object after the barrier has stopped. Slots
 * may name other memory, and objects that are live, for as long as they like; the wait forgets
 * those. Whether an object is deferred is certain only while the heap is held as for a walk
 * (slab/fork.c) and the CPUs of the cache are owned. So the wait asks when it sees a name first,
 * and then less and less often, in case the address was reused and named again in between. A name
 * that stays is reported as a stall, because it may be in a movable slot that this thread has; no
 * record says which thread that is.
 *
 * Locks: none is held during a sleep.
 */
#include "toolkit/domains/named.h"

#include "gp/user/drive.h"
#include "slab/cpu_cache.h"
#include "slab/node.h"
#include "slab/reclaim/drain.h"
#include "slab/slab.h"
#include "slab/start.h"
#include "toolkit/domains/hazard.h"

#define PAUSE_MIN_NS 5000
#define PAUSE_MAX_NS 1000000

/* Owns the CPUs of the cache, or lets them go. A cold cache and one of blocks have none. */
static void named_hold_cpus(struct prudence_cache *cache, bool *fenced)
{
    cpu_cache_claim_all(cache, fenced);
    *fenced = os_percpu_fence_all();
    cpu_cache_confirm_all(cache, fenced);
}

static bool ring_has(const struct cpu_cache *cpu, const void *object)
{
    uint64_t at = cpu->line.ring_head;

    for (; cpu->slots && (int64_t)(cpu->line.ring_tail - at) > 0; at++)
        if (cpu->line.ring[at & cpu->line.ring_mask] == object)
            return true;
    return false;
}

static bool is_in_a_ring(const struct prudence_cache *cache, const void *object)
{
    for (unsigned i = 0; cache->percpu && i < os_cpu_count(); i++)
        if (ring_has(cpu_cache_of(cache, i), object))
            return true;
    return false;
}

/* Returns whether the address is in a deferred object of the cache. The heap is held, and the CPUs
 * are owned. */
static bool is_deferred(const void *name, void *context)
{
    const struct prudence_cache *cache = context;
    struct slab *slab = os_page_owner(name);
    unsigned index;

    if (!slab || slab->cache != cache || slab->changing || (const char *)name < slab->base)
        return false;
    index = slab->capacity > 1 ? slab_index(slab, name) : 0;
    return index < slab->capacity &&
           (node_has_latent(slab, index) ||
            is_in_a_ring(cache, slab_object(slab, index, cache->body->stride)));
}

/* Forgets names that are not those of deferred objects of the cache. */
static void keep_deferred(struct hazard_watch *watch, struct prudence_cache *cache)
{
    unsigned kept = 0;
    bool fenced;

    slab_fork_hold();
    named_hold_cpus(cache, &fenced);
    for (unsigned i = 0; i < watch->count; i++)
        if (is_deferred(watch->seen[i].name, cache))
            watch->seen[kept++] = watch->seen[i];
    watch->count = kept;
    cpu_cache_release_all(cache, &fenced, fenced);
    slab_fork_let_go();
}

bool named_by_this_thread(struct prudence_cache *cache)
{
    bool names, fenced;

    if (likely(!(cache->flags & CACHE_POLLS_OBJECTS)) || !hazard_slots_thread_names())
        return false;
    slab_fork_hold();
    named_hold_cpus(cache, &fenced);
    names = hazard_slots_thread_names_any(false, is_deferred, cache);
    cpu_cache_release_all(cache, &fenced, fenced);
    slab_fork_let_go();
    return names;
}

bool named_wait(struct prudence_cache *cache, uint64_t deadline)
{
    struct hazard_watch watch;

    drain_cache(cache, false); /* closes all batches */
    if (!gp_wait_for_sections(cache->domain, gp_snapshot(cache->domain), deadline, false))
        return false;
    hazard_barrier();
    hazard_names_watch(&watch);
    for (unsigned looks = 1; !hazard_names_watched(&watch); looks++) {
        if (watch.is_new || !(looks & (looks - 1)))
            keep_deferred(&watch, cache);
        if (!watch.count)
            continue; /* there may be further names */
        hazard_names_report(cache->domain, &watch);
        if (deadline && os_clock_ns() >= deadline)
            return false;
        hazard_slots_reap();
        os_sleep_ns(min_size((uint64_t)PAUSE_MIN_NS * looks, PAUSE_MAX_NS));
    }
    gp_drive_tell_over(cache->domain);
    return true;
}

void named_note(struct prudence_cache *cache, struct named_stall *stall)
{
    if (!stall->begun)
        hazard_names_watch(&stall->watch);
    stall->begun = !hazard_names_watched(&stall->watch);
    if (!hazard_names_stall(&stall->watch))
        return;
    keep_deferred(&stall->watch, cache);
    hazard_names_report(cache->domain, &stall->watch);
}
