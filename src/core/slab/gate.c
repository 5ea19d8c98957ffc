/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The gate: every object passes here that the fast path did not serve, because the path found too
 * much or too little, is closed, or does not exist. Extensions see allocations, frees and deferrals
 * here. Then the restartable sequences, or without them the locks, serve the object if they can
 * and were not tried, else the slow path.
 */
#include "slab/gate.h"

#include "os/os.h"
#include "slab/extension.h"
#include "slab/node.h"
#include "slab/reuse.h"
#include "slab/slab.h"
#include "slab/slow_path.h"

/* Returns whether CPUs' caches may serve the slab's objects, even if the fast paths are closed. */
static bool has_lines(const struct slab *slab)
{
    return likely(!slab->alone) && likely(slab->cache->percpu != NULL);
}

static bool gate_push(const struct slab *slab, void *object)
{
    return has_lines(slab) && os_percpu_serve_push(&slab->cache->percpu, object);
}

static bool gate_append(const struct slab *slab, void *object)
{
    return has_lines(slab) && os_percpu_serve_append(&slab->cache->percpu, object);
}

/* Returns whether the fast path was tried. It was not if the cache alone is closed, because an
 * extension reads allocations only. */
static bool was_tried(const struct slab *slab)
{
    return load_relaxed(&slab->cache->fast_percpu) == load_relaxed(&slab->fast_percpu);
}

/* Pops only if an extension keeps the fast path closed; otherwise that was tried. */
void *gate_take(struct prudence_cache *cache, os_alloc_flags flags)
{
    void *object = NULL;

    if (cache_extensions(cache) && cache->percpu &&
        load_relaxed(&cache->fast_percpu) != cache->percpu)
        object = os_percpu_serve_pop(&cache->percpu);
    return object ? object : alloc_from_cache(cache, flags);
}

/* Allocates with extensions. The caller asked for `size`. */
static void *alloc_extended(struct prudence_cache *cache, size_t size, os_alloc_flags flags)
{
    void *object = extensions_instead(cache, size);

    if (!object && !cache_is_cold(cache))
        object = gate_take(cache, flags);
    if (object && load_relaxed(&cache->slab_extensions))
        extensions_allocated(slab_known(object), object, size, false);
    return object;
}

void *gate_alloc(struct prudence_cache *cache, size_t size, os_alloc_flags flags)
{
    if (unlikely(cache_extensions(cache)))
        return alloc_extended(cache, size ? size : cache->object_size, flags);
    return alloc_from_cache(cache, flags);
}

/* Takes the stack's objects in one go, the others one by one; with extensions, all one by one. */
size_t gate_alloc_bulk(struct prudence_cache *cache, size_t count, void **objects,
                       os_alloc_flags flags)
{
    size_t done = 0;

    if (likely(!cache_extensions(cache)))
        return alloc_bulk_from_cache(cache, count, objects, flags);
    while (done < count && (objects[done] = gate_alloc(cache, 0, flags)))
        done++;
    return done;
}

void gate_put_kept(struct slab *slab, void *object)
{
    if (!gate_push(slab, object))
        free_to_cache(slab, object);
}

void gate_free(struct slab *slab, void *object, const char *what)
{
    if (likely(!load_relaxed(&slab->extensions))) {
        if (was_tried(slab) || !gate_push(slab, object))
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
    node_shrink_to(cache, cache->body->free_limit);
}

/* Defers with extensions. Once deferred, the object may lose the slab at any time. */
static void defer_extended(struct slab *slab, void *object, const char *what)
{
    struct prudence_cache *cache = slab->cache;
    bool hurried = slab->alone && slab->hurried; /* next to bits that the node's lock guards */
    unsigned flags = cache->flags;

    extensions_deferred(slab, object, what);
    if (!gate_append(slab, object))
        defer_in_cache(slab, object);
    if (flags & CACHE_DESTRUCTED)
        reuse_put_off(flags);
    if (hurried)
        gate_hasten(cache);
}

void gate_free_deferred(struct slab *slab, void *object, const char *what)
{
    if (unlikely(load_relaxed(&slab->extensions)))
        defer_extended(slab, object, what);
    else if (was_tried(slab) || !gate_append(slab, object))
        defer_in_cache(slab, object);
}
