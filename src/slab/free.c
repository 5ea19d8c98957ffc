/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * An object's way in, when no reader can hold it: object cache; when that is full, a flush first.
 */
#include "slab/cache.h"

/* Makes room on this CPU's stack if need be, and pushes. False when the caches are another's, or
 * have no arrays yet. What was flushed is in `objects`. */
static bool push_or_flush(struct prudence_cache *cache, void *object, void **objects,
                          unsigned *flushed)
{
    struct cpu_cache *cpu = cpu_cache_take(cache, flushed);
    bool pushed;

    if (!cpu)
        return false;
    if (cpu->slots && stack_count(&cpu->line) >= cpu->size) {
        *flushed = object_cache_take(cpu, objects, object_cache_flush_count(cpu));
        count_add(&cpu->counts.unstacked, *flushed);
        cpu->churned = true;
    }
    pushed = object_cache_push(cpu, &object, 1);
    cpu_cache_release(cpu);
    return pushed;
}

static void free_past_stack(struct prudence_cache *cache, void *object)
{
    void *objects[TRANSFER_MAX];
    unsigned flushed = 0;
    bool pushed = false;

    if (cache->lines) {
        pushed = push_or_flush(cache, object, objects, &flushed);
        if (!pushed && cpu_cache_grow(cache, cache->size_min))
            pushed = push_or_flush(cache, object, objects, &flushed);
        if (flushed)
            node_flush(cache, objects, flushed);
    }
    if (!pushed)
        node_put(cache, &object, 1);
}

void cache_free_slow(struct slab *slab, void *object)
{
    struct prudence_cache *cache = slab->cache;

    if (unlikely(cache->checked))
        object_state_change(slab, object, OBJECT_LIVE, OBJECT_FREE, "free");
    free_past_stack(cache, object);
}
