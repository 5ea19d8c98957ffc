/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Frees an object that no reader can hold: pushes it on the object cache, after a flush if that is
 * full. Fast paths also send objects here that are already on top of the object cache, and so freed
 * twice.
 */
#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/cpu_cache.h"
#include "slab/misuse.h"
#include "slab/node.h"
#include "slab/object_cache.h"
#include "slab/reclaim/decay.h"
#include "slab/reclaim/abandoned.h"
#include "slab/slow_path.h"

/* Objects on their way from the object cache to their slabs. */
struct flush {
    bool no_arrays;  /* finding: the CPU has no arrays yet */
    bool twice;      /* finding: the object is on top of the stack already */
    unsigned wanted; /* objects still to be taken */
    unsigned taken;
    void *objects[TRANSFER_MAX];
};

static void take_for_flush(struct cpu_cache *cpu, struct flush *flush)
{
    flush->taken = object_cache_take_coldest(cpu, flush->objects,
                                             (unsigned)min_size(flush->wanted, TRANSFER_MAX));
    flush->wanted -= flush->taken;
    count_add(&cpu->counts.unstacked, flush->taken);
    cpu->churned = true;
}

/* Pushes the object on this CPU's stack, and makes room first if necessary. Returns false if
 * another thread owns the caches, or they have no arrays yet. */
static bool push_or_flush(struct prudence_cache *cache, void *object, struct flush *flush)
{
    struct cpu_cache *cpu = cpu_cache_take(cache, flush);
    bool pushed;

    flush->no_arrays = cpu && !cpu->slots;
    if (!cpu)
        return false;
    flush->twice = object_cache_is_top(cpu, object);
    if (cpu->slots && stack_count(&cpu->line) >= cpu->size && !flush->twice) {
        flush->wanted = object_cache_flush_count(cpu);
        take_for_flush(cpu, flush);
    }
    pushed = flush->twice || object_cache_push(cpu, &object, 1);
    cpu_cache_release(cpu);
    return pushed;
}

/* Takes the next part of a flush. Each part is one move, so that the caches are never owned for
 * long. */
static void flush_more(struct prudence_cache *cache, struct flush *flush)
{
    struct cpu_cache *cpu = flush->wanted ? cpu_cache_take(cache, flush) : NULL;

    flush->taken = 0;
    if (!cpu)
        return;
    take_for_flush(cpu, flush);
    cpu_cache_release(cpu);
}

static void free_past_stack(struct slab *slab, void *object)
{
    struct prudence_cache *cache = slab->cache;
    struct flush flush UNINITIALIZED;
    bool pushed = false, decays = true;

    flush.wanted = flush.taken = 0;
    flush.twice = false;
    os_in_flight_begin();
    if (cache->percpu) {
        pushed = push_or_flush(cache, object, &flush);
        /* Another CPU's small object goes to its slab, or its line would be used here, too. */
        if (flush.no_arrays && abandoned_grow(cache) && cache->body->line_objects == 1)
            pushed = push_or_flush(cache, object, &flush);
        if (!pushed)
            decays = decay_visit_count_bypass(cache);
    }
    for (; flush.taken; flush_more(cache, &flush))
        node_flush(cache, flush.objects, flush.taken);
    if (!pushed)
        node_put(cache, &object, 1);
    os_in_flight_end();
    if (unlikely(flush.twice)) {
        misuse_describe_double(slab, object, false, "free");
        os_misuse();
    }
    if (decays)
        decay_visit();
}

void free_to_cache(struct slab *slab, void *object)
{
    if (likely(!slab->alone)) {
        free_past_stack(slab, object);
        return;
    }
    node_put(slab->cache, &object, 1);
    decay_visit();
}
