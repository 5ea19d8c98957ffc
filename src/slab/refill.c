/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Refill: slabs -> object cache, and where the objects come from: this CPU's node, quiet CPUs, other caches' free
 * slabs, new pages, any node. Nothing is owned.
 */
#include "slab/refill.h"

#include "os/os.h"
#include "slab/cache.h"
#include "slab/cpu_cache.h"
#include "slab/drain.h"
#include "slab/latent_cache.h"
#include "slab/node.h"
#include "slab/object_cache.h"
#include "slab/pressure.h"
#include "slab/slab.h"
#include "slab/spare.h"
#include "slab/upkeep.h"

/* Objects that fit beside what is free and what is latent. */
static unsigned room_beside_latent(const struct cpu_cache *cpu)
{
    unsigned taken = stack_count(&cpu->line) + latent_count(cpu);

    return cpu->size > taken ? cpu->size - taken : 0;
}

/*
 * Puts refilled objects on the stack of the CPU that runs now; what does not fit goes back. So a grace period that ends
 * right after a refill overfills no object cache, whatever was deferred since the miss counted, and whichever CPU the
 * thread has come to.
 */
static void stack_refilled(struct prudence_cache *cache, void **objects, unsigned count)
{
    unsigned put = 0;
    struct cpu_cache *cpu = cpu_cache_take(cache, &put);

    if (cpu) {
        put = object_cache_push(cpu, objects, (unsigned)min_size(count, room_beside_latent(cpu)));
        count_add(&cpu->counts.stacked, put);
        count_add(&cpu->counts.refilled_objects, put);
        count_add(&cpu->counts.refills, 1);
        os_event(refill, cache, put);
        cpu_cache_release(cpu);
    }
    if (put < count)
        node_flush(cache, objects + put, count - put);
}

/* From a node; while there are any they are carried. */
static unsigned take_up(struct prudence_cache *cache, struct slab_node *node, void **objects,
                        unsigned count)
{
    unsigned taken;

    os_carry_begin();
    taken = node_take(cache, node, objects, count);
    if (!taken)
        os_carry_end();
    return taken;
}

/* Objects of a new slab. If the node's memory is used up, its pages are another node's, and so is the slab; then that
 * node is asked for objects before the next slab is made. */
static unsigned take_new(struct prudence_cache *cache, struct slab_node *node, void **objects,
                         unsigned count, os_alloc_flags flags)
{
    struct slab_node *helper = load_relaxed(&node->helper);
    unsigned taken = unlikely(helper != NULL) ? take_up(cache, helper, objects, count) : 0;
    struct slab *slab;

    if (taken)
        return taken;
    spare_give((unsigned)(node - cache->nodes), cache->slab_bytes);
    slab = slab_grow(cache, (unsigned)(node - cache->nodes), flags);
    if (!slab)
        return 0;
    helper = node_of(slab);
    store_relaxed(&node->helper, helper != node ? helper : NULL);
    os_carry_begin();
    return node_add_slab(helper, slab, objects, count);
}

/* Objects from this CPU's node, unless it is *empty: found to have none a moment ago. If the cache may grow, from quiet
 * CPUs or a new slab, else from any node that has some; if not, *empty is told. */
static unsigned take(struct prudence_cache *cache, void **objects, unsigned count, bool may_grow,
                     const struct slab_node **empty, os_alloc_flags flags)
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
    for (unsigned i = 0; !taken && i < os_node_count(); i++)
        taken = take_up(cache, &cache->nodes[i], objects, count);
    return taken;
}

/*
 * The miss: takes up to `count` objects from the node. One is returned, the others go to the object cache, to be
 * handed out in the order of their addresses, because a program often walks in that order what it makes in one go. If
 * the cache may grow, it does so, and under memory pressure waits for a grace period before it fails (rule 9).
 */
static void *refill(struct prudence_cache *cache, unsigned count, bool may_grow,
                    const struct slab_node **empty, os_alloc_flags flags)
{
    void *objects[TRANSFER_MAX] UNINITIALIZED;
    struct reclaim reclaim = {.began = 0};
    unsigned taken;

    count = (unsigned)clamp_size(count, 1, TRANSFER_MAX);
    do
        taken = take(cache, objects, count, may_grow, empty, os_alloc_first(flags));
    while (!taken && may_grow && pressure_reclaim(cache, flags, &reclaim));
    if (!taken && may_grow)
        taken = take(cache, objects, count, true, empty, flags);
    if (!taken)
        return NULL;
    if (taken > 1)
        stack_refilled(cache, objects + 1, taken - 1);
    os_carry_end();
    pressure_relieve();
    return objects[0];
}

/* The refill of a miss: from the node, or if the cache may grow, from wherever there are objects. One that may not says which
 * node is *empty, and the one that follows does not look there again, unless the caller has waited and so forgets it. */
void *object_cache_refill(struct prudence_cache *cache, unsigned count, bool may_grow,
                          const struct slab_node **empty, os_alloc_flags flags)
{
    void *object = refill(cache, count, may_grow, empty, flags);

    if (object)
        come_by();
    return object;
}

/* Past the object cache, which is another's now. */
void *object_cache_bypass(struct prudence_cache *cache, os_alloc_flags flags)
{
    bool comes_by = count_bypass(cache);
    const struct slab_node *empty = NULL;
    void *object = refill(cache, 1, true, &empty, flags);

    if (object && comes_by)
        come_by();
    return object;
}
