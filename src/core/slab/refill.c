/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Refill: fills an object cache from slabs. The objects come from this CPU's node, quiet CPUs, free
 * slabs of other caches, new pages, or any node, in this order. The caller owns nothing.
 */
#include "slab/refill.h"

#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/cpu_cache.h"
#include "slab/latent_cache.h"
#include "slab/node.h"
#include "slab/object_cache.h"
#include "slab/reclaim/decay.h"
#include "slab/reclaim/drain.h"
#include "slab/reclaim/pressure.h"
#include "slab/reuse.h"
#include "slab/slab.h"

/* Policy: how many objects does a refill bring? */
#define UNMERGED_MAX 16 /* refills; doubled so often, a batch is over half of any cache */

_Static_assert(FIELD_HOLDS(struct cpu_cache, unmerged_refills, UNMERGED_MAX), "none is lost");

/*
 * Returns the objects that a refill brings to an object cache at most. Where closed batches will
 * become safe whatever this CPU does, these are one batch, and twice as many for each refill since
 * the last merge, up to half of the cache: what is latent comes back soon, and would overflow a
 * full cache. Elsewhere a refill leaves room for the latent objects (rule 3), but fills at least
 * half. Otherwise a cache with as many latent objects as it has room would take one object at a
 * time from the node until their grace period is over (ADR 139). Half, because a flush leaves half:
 * the cache is as far from the next flush as from the next refill.
 */
static unsigned refill_goal(const struct prudence_cache *cache, const struct cpu_cache *cpu)
{
    unsigned latent = latent_cache_count(cpu), half = cpu->size / 2;
    unsigned room = cpu->size > latent ? cpu->size - latent : 0;

    if (!GP_CALLERS_DRIVE && latent_cache_waits(cpu))
        return (unsigned)min_size((size_t)batch_of(cache, cpu) << cpu->unmerged_refills, half);
    return room > half ? room : half;
}

/* Returns the objects that a refill may add. The caller owns the CPU's caches. */
unsigned refill_room(const struct prudence_cache *cache, const struct cpu_cache *cpu)
{
    unsigned free = stack_count(&cpu->line), goal = refill_goal(cache, cpu);

    return goal > free ? goal - free : 0;
}

/*
 * Puts refilled objects on the stack of the current CPU, and returns the rest to the node. The room
 * is counted again, because objects may have been deferred since the miss, or the thread may have
 * moved to another CPU.
 */
static void stack_refilled(struct prudence_cache *cache, void **objects, unsigned count)
{
    unsigned put = 0;
    struct cpu_cache *cpu = cpu_cache_take(cache, &put);

    if (cpu) {
        put = object_cache_push(cpu, objects, (unsigned)min_size(count, refill_room(cache, cpu)));
        if (latent_cache_waits(cpu) && cpu->unmerged_refills < UNMERGED_MAX)
            cpu->unmerged_refills++;
        count_add(&cpu->counts.stacked, put);
        count_add(&cpu->counts.refilled_objects, put);
        count_add(&cpu->counts.refills, 1);
        os_event(refill, cache, put);
        cpu_cache_release(cpu);
    }
    if (put < count)
        node_flush(cache, objects + put, count - put);
}

/* Returns objects that need something, for a thread that may not do it. One counts as freed if the
 * thread gets none, because the node has counted an allocation. */
static void put_back_unfit(struct reuse *reuse)
{
    unsigned at = reuse->fit;

    if (!at)
        node_put(reuse->cache, &reuse->objects[at++], 1);
    node_put_selected(reuse->cache, reuse->objects + at, reuse->count - at);
    reuse->count = reuse->fit;
}

/* Makes up to REUSE_MAX objects fit that a refill has taken from slabs. Returns one; the others go
 * to the object cache. Returns NULL if none is fit, and the thread may make none fit (reuse.c). */
static __attribute__((__noinline__)) void *reuse_refilled(struct prudence_cache *cache,
                                                          void **objects, unsigned count, bool may)
{
    struct reuse reuse UNINITIALIZED;

    reuse.cache = cache;
    reuse.count = count;
    os_copy_pointers(reuse.objects, objects, count);
    reuse.may = may;
    reuse_upcalls.sort(&reuse);
    if (reuse.fit < count && reuse.may)
        reuse_upcalls.make_fit(&reuse);
    else if (reuse.fit < count)
        put_back_unfit(&reuse);
    if (reuse.count > 1)
        stack_refilled(cache, reuse.objects + 1, reuse.count - 1);
    os_in_flight_end();
    return reuse.count ? reuse.objects[0] : NULL;
}

/* Takes objects from a node. If there are any, the caller carries them. */
static unsigned take_up(struct prudence_cache *cache, struct slab_node *node, void **objects,
                        unsigned count)
{
    unsigned taken;

    os_in_flight_begin();
    taken = node_take(cache, node, objects, count);
    if (!taken)
        os_in_flight_end();
    return taken;
}

/* Takes objects from any node, `first` before the others. */
static unsigned take_up_anywhere(struct prudence_cache *cache, const struct slab_node *first,
                                 void **objects, unsigned count)
{
    unsigned taken = 0, at = (unsigned)(first - cache->body->nodes);

    for (unsigned i = 0; !taken && i < os_node_count(); i++)
        taken = take_up(cache, &cache->body->nodes[(at + i) % os_node_count()], objects, count);
    return taken;
}

/* Takes objects of a new slab. If the node has no memory, the pages and the slab belong to
 * another node. Then, and after threads have come from another node (abandoned.c), all nodes are
 * asked for objects before the next slab is made, that one first. */
static unsigned take_new(struct prudence_cache *cache, struct slab_node *node, void **objects,
                         unsigned count, os_alloc_flags flags)
{
    struct slab_node *helper = load_relaxed(&node->helper);
    unsigned taken = unlikely(helper != NULL) ? take_up_anywhere(cache, helper, objects, count) : 0;
    struct slab *slab;

    if (taken)
        return taken;
    decay_early(cache, (unsigned)(node - cache->body->nodes), cache->body->slab_bytes);
    slab = slab_grow(cache, (unsigned)(node - cache->body->nodes), flags);
    if (!slab)
        return 0;
    helper = node_of(slab);
    store_relaxed(&node->helper, helper != node ? helper : NULL);
    os_in_flight_begin();
    return node_add_slab(helper, slab, objects, count);
}

/* Takes objects from this CPU's node, unless *empty says that it had none a moment ago. If the
 * cache may grow, then tries quiet CPUs, a new slab, and all nodes. Otherwise stores a node without
 * objects in *empty. */
static unsigned refill_take(struct prudence_cache *cache, void **objects, unsigned count,
                            bool may_grow, const struct slab_node **empty, os_alloc_flags flags)
{
    struct slab_node *node = node_here(cache);
    unsigned taken = node != *empty ? take_up(cache, node, objects, count) : 0;

    *empty = may_grow || taken ? NULL : node;
    if (taken || !may_grow)
        return taken;
    if (OS_REMOTE_IS_QUICK && drain_quiet_cpus(cache)) {
        taken = take_up(cache, node, objects, count);
        if (taken)
            return taken;
    }
    taken = take_new(cache, node, objects, count, flags);
    return taken ? taken : take_up_anywhere(cache, cache->body->nodes, objects, count);
}

/*
 * Serves a miss with up to `count` objects from the node. Returns one and puts the others into the
 * object cache, to be handed out in address order, because programs often walk in that order the
 * objects made in one go. If the cache may grow, it does, and under memory pressure waits for a
 * grace period before failing (rule 9).
 */
static void *refill_from_node(struct prudence_cache *cache, unsigned count, bool may_grow,
                              const struct slab_node **empty, os_alloc_flags flags)
{
    void *objects[TRANSFER_MAX] UNINITIALIZED;
    struct reclaim reclaim = {.began = 0};
    bool may = unlikely(cache->flags & CACHE_DESTRUCTED) && reuse_upcalls.may_reuse();
    unsigned taken;

    count = (unsigned)clamp_size(
        count, 1, unlikely(cache->flags & CACHE_DESTRUCTED) ? REUSE_MAX : TRANSFER_MAX);
    do
        taken = refill_take(cache, objects, count, may_grow, empty, os_alloc_first(flags));
    while (!taken && may_grow && pressure_reclaim(cache, flags, &reclaim));
    if (!taken && may_grow)
        taken = refill_take(cache, objects, count, true, empty, flags);
    if (!taken)
        return NULL;
    if (unlikely(cache->flags & CACHE_DESTRUCTED)) {
        objects[0] = reuse_refilled(cache, objects, taken, may);
    } else {
        if (taken > 1)
            stack_refilled(cache, objects + 1, taken - 1);
        os_in_flight_end();
    }
    pressure_purge();
    return objects[0];
}

/* Refills after a miss, from the node, or from anywhere if the cache may grow. A refill that may
 * not grow stores the empty node in *empty; the next refill skips that node, unless the caller
 * clears *empty after a wait. */
void *refill_object_cache(struct prudence_cache *cache, unsigned count, bool may_grow,
                          const struct slab_node **empty, os_alloc_flags flags)
{
    void *object = refill_from_node(cache, count, may_grow, empty, flags);

    if (object)
        decay_visit_and_drive();
    return object;
}

/* Allocates past the object cache, which another thread owns. */
void *refill_bypass_cache(struct prudence_cache *cache, os_alloc_flags flags)
{
    bool decays = decay_visit_count_bypass(cache);
    const struct slab_node *empty = NULL;
    void *object = refill_from_node(cache, 1, true, &empty, flags);

    if (object && decays)
        decay_visit_and_drive();
    return object;
}
