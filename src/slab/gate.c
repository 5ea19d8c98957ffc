/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The gate: every object passes here that the fast path did not serve, because the path found too
 * much or too little, is closed, or does not exist. Extensions see allocations, frees and deferrals
 * here. Then the restartable sequences serve the object if they can and were not tried, else the
 * slow path.
 */
#include "slab/gate.h"

#include "os/os.h"
#include "slab/extension.h"
#include "slab/node.h"
#include "slab/slab.h"
#include "slab/slow_path.h"

/* Returns whether restartable sequences may serve a cache, even if the fast paths are closed. */
static bool sequences_serve(const struct prudence_cache *cache)
{
    return likely(os_percpu_rseq) && likely(cache->percpu != NULL);
}

static bool is_open(const struct prudence_cache *cache)
{
    return likely(load_relaxed(&cache->fast_percpu) == cache->percpu);
}

static void *gate_take(struct prudence_cache *cache, os_alloc_flags flags)
{
    void *object = NULL;

    if (!is_open(cache) && sequences_serve(cache))
        object = os_percpu_pop(&cache->percpu);
    return object ? object : alloc_from_cache(cache, flags);
}

/* Allocates with extensions. The caller asked for `size`. */
static void *alloc_extended(struct prudence_cache *cache, size_t size, os_alloc_flags flags)
{
    void *object = extensions_instead(cache, size);

    if (!object) {
        object = gate_take(cache, flags);
        object = object ? extensions_taken(cache, object) : NULL;
    }
    if (object && cache->slab_extensions)
        extensions_allocated(slab_known(object), object, size, false);
    return object;
}

void *gate_alloc(struct prudence_cache *cache, size_t size, os_alloc_flags flags)
{
    if (unlikely(cache->extensions))
        return alloc_extended(cache, size ? size : cache->object_size, flags);
    return gate_take(cache, flags);
}

/* Takes the stack's objects in one go, the others one by one; with extensions, all one by one. */
size_t gate_alloc_bulk(struct prudence_cache *cache, size_t count, void **objects,
                       os_alloc_flags flags)
{
    size_t done = 0;

    if (likely(!cache->extensions))
        return alloc_bulk_from_cache(cache, count, objects, flags);
    while (done < count && (objects[done] = gate_alloc(cache, 0, flags)))
        done++;
    return done;
}

void gate_put_kept(struct slab *slab, void *object)
{
    struct prudence_cache *cache = slab->cache;

    if (slab->alone || !sequences_serve(cache) || !os_percpu_push(&cache->percpu, object))
        free_to_cache(slab, object);
}

/* Returns whether the slab is open although the cache is closed, because an extension looks at
 * allocations only. */
static bool slab_is_open(const struct slab *slab)
{
    return load_relaxed(&slab->cache->fast_percpu) != load_relaxed(&slab->fast_percpu);
}

void gate_free(struct slab *slab, void *object, const char *what)
{
    if (likely(!load_relaxed(&slab->extensions))) {
        if (!slab_is_open(slab) || !os_percpu_push(&slab->fast_percpu, object))
            free_to_cache(slab, object);
        return;
    }
    extensions_freed(slab, object, what);
    if (!extensions_released(slab, object, true))
        gate_put_kept(slab, object);
}

/* Drives the grace period of a lone object, and merges what is safe. */
static void gate_hasten(struct prudence_cache *cache)
{
    gp_advance(cache->domain, gp_snapshot(cache->domain));
    node_shrink_to(cache, cache->free_limit);
}

/* Defers with extensions. Once deferred, the object may lose the slab at any time. */
static void defer_extended(struct slab *slab, void *object, const char *what)
{
    struct prudence_cache *cache = slab->cache;
    bool alone = slab->alone, hurried = slab->hurried;

    extensions_deferred(slab, object, what);
    if (alone || !sequences_serve(cache) || !os_percpu_append(&cache->percpu, object))
        defer_in_cache(slab, object);
    if (hurried)
        gate_hasten(cache);
}

void gate_free_deferred(struct slab *slab, void *object, const char *what)
{
    if (unlikely(load_relaxed(&slab->extensions)))
        defer_extended(slab, object, what);
    else if (!slab_is_open(slab) || !os_percpu_append(&slab->fast_percpu, object))
        defer_in_cache(slab, object);
}
