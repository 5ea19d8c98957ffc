// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Allocates and frees objects, on a fast path if possible and else on a slow path. */
#include "annotate.h"
#include "classes.h"
#include "module.h"
#include "seams.h"
#include "slab/gate.h"
#include "slab/large.h"
#include "slab/slab.h"

/*
 * Fast paths require interrupts to be on, so this is no NMI and the exit path need not restore
 * flags. Callers with interrupts off use the _irqs_off variants.
 */

/* Interrupts are off in an NMI too. */
static bool refused_in_nmi(void)
{
    if (likely(!in_nmi()))
        return false;
    WARN_ONCE(1, "prudence: called from NMI");
    return true;
}

/* Slabs are shared and may lie anywhere, so no zone can be requested. */
#define ZONES_REFUSED (__GFP_DMA | __GFP_DMA32)

static bool is_refused(gfp_t gfp)
{
    if (likely(!(gfp & ZONES_REFUSED)))
        return false;
    WARN_ONCE(1, "prudence: allocations from a zone (GFP_DMA, GFP_DMA32) are not supported: gfp %x\n",
              (__force unsigned int)gfp);
    return true;
}

/* Handles objects that must not simply be zeroed. Returns NULL if the flags are refused. Contents
 * set by a constructor stay. So do those of type-safe memory, which readers may read, unless the
 * owner passes __GFP_ZERO. */
static noinline void *ready_otherwise(void *object, gfp_t gfp, struct prudence_cache *cache)
{
    if (is_refused(gfp)) {
        prudence_cache_free(cache, object);
        return NULL;
    }
    return cache->flags & CACHE_CONSTRUCTED || !(gfp & __GFP_ZERO)
               ? object
               : memset(object, 0, cache->object_size);
}

static noinline void *zeroed(void *object, gfp_t gfp, struct prudence_cache *cache)
{
    if (unlikely(contents_stay(cache) || gfp & ZONES_REFUSED))
        return ready_otherwise(object, gfp, cache);
    return memset(object, 0, cache->object_size);
}

/* Prepares a free object for the caller. */
static __always_inline void *ready(struct prudence_cache *cache, void *object, gfp_t gfp)
{
    annotate_live(cache, object, cache->body->stride);
    return unlikely(want_init_on_alloc(gfp) || gfp & ZONES_REFUSED) ? zeroed(object, gfp, cache)
                                                                    : object;
}

/* Returns whether a call that must not fail should try again, after a tick. Needs a caller that may
 * sleep. */
static bool tries_again(gfp_t gfp)
{
    if (likely(!(gfp & __GFP_NOFAIL)))
        return false;
    if (WARN_ONCE(!gfpflags_allow_blocking(gfp), "prudence: __GFP_NOFAIL from a context that may not sleep\n"))
        return false;
    schedule_timeout_uninterruptible(1);
    return true;
}

static noinline void *alloc_slow(struct prudence_cache *cache, gfp_t gfp)
{
    void *object;

    do
        object = gate_alloc(cache, 0, gfp);
    while (!object && tries_again(gfp));
    return object ? ready(cache, object, gfp) : NULL;
}

static noinline void *alloc_irqs_off(struct prudence_cache *cache, gfp_t gfp)
{
    void *object;

    if (refused_in_nmi())
        return NULL;
    object = os_percpu_pop_here(&cache->fast_percpu);
    return object ? ready(cache, object, gfp) : alloc_slow(cache, gfp);
}

static __always_inline void *alloc_here(struct prudence_cache *cache, gfp_t gfp)
{
    void *object;

    if (unlikely(irqs_disabled()))
        return alloc_irqs_off(cache, gfp);
    local_irq_disable();
    object = os_percpu_pop_here(&cache->fast_percpu);
    if (unlikely(!object)) {
        local_irq_enable();
        return alloc_slow(cache, gfp);
    }
    local_irq_enable();
    return ready(cache, object, gfp);
}

/* Returns whether might_alloc() would do anything, because the kernel checks callers (and may sleep
 * then) or another thread wants the CPU. Otherwise fast paths skip the call. */
static __always_inline bool alloc_is_looked_at(void)
{
    return IS_ENABLED(CONFIG_LOCKDEP) || IS_ENABLED(CONFIG_DEBUG_ATOMIC_SLEEP) ||
           unlikely(should_resched(0));
}

static noinline void *alloc_looked_at(struct prudence_cache *cache, gfp_t gfp)
{
    might_alloc(gfp);
    return alloc_here(cache, gfp);
}

static __always_inline void *alloc(struct prudence_cache *cache, gfp_t gfp)
{
    return alloc_is_looked_at() ? alloc_looked_at(cache, gfp) : alloc_here(cache, gfp);
}

/* Reports a pointer that is no object. Nothing is freed. */
static noinline void misuse(const struct prudence_cache *cache, const void *object)
{
    const struct slab *slab = os_page_owner(object);

    if (!object)
        return;
    WARN(1, "prudence: %p is not an object of cache '%s' (its page: %s)\n", object,
         cache ? cache->name : "any", slab ? slab->cache->name : "not ours");
}

static noinline void free_slow(struct slab *slab, void *object)
{
    gate_free(slab, object, "prudence_cache_free");
}

/* Zeroes a free object if the kernel wants that, and informs KASAN. */
static __always_inline void clean(const struct slab *slab, void *object)
{
    if (zeroed_when_free(slab->cache))
        memset(object, 0, slab_object_bytes(slab));
    annotate_free(slab->cache, object, slab_object_bytes(slab));
}

static noinline void free_irqs_off(struct slab *slab, void *const *lines, void *object)
{
    if (refused_in_nmi())
        return;
    clean(slab, object);
    if (!os_percpu_push_here(lines, object))
        free_slow(slab, object);
}

static __always_inline void free_object(struct slab *slab, void *const *lines, void *object)
{
    if (unlikely(irqs_disabled())) {
        free_irqs_off(slab, lines, object);
        return;
    }
    clean(slab, object);
    local_irq_disable();
    if (unlikely(!os_percpu_push_here(lines, object))) {
        local_irq_enable();
        free_slow(slab, object);
        return;
    }
    local_irq_enable();
}

static noinline void defer_slow(struct slab *slab, void *object)
{
    gate_free_deferred(slab, object, "prudence_cache_free_deferred");
    prudence_shrinker_note_deferral();
}

static noinline void defer_irqs_off(struct slab *slab, void *const *lines, void *object)
{
    if (!refused_in_nmi() && !os_percpu_append_here(lines, object))
        defer_slow(slab, object);
}

static __always_inline void defer_object(struct slab *slab, void *const *lines, void *object)
{
    if (unlikely(irqs_disabled())) {
        defer_irqs_off(slab, lines, object);
        return;
    }
    local_irq_disable();
    if (unlikely(!os_percpu_append_here(lines, object))) {
        local_irq_enable();
        defer_slow(slab, object);
        return;
    }
    local_irq_enable();
}

void *prudence_cache_alloc(struct prudence_cache *cache, gfp_t gfp)
{
    return alloc(cache, gfp);
}
EXPORT_SYMBOL_GPL(prudence_cache_alloc);

void prudence_cache_free(struct prudence_cache *cache, void *object)
{
    struct slab *slab = slab_of_cache(cache, object);

    if (likely(slab))
        free_object(slab, &cache->fast_percpu, object);
    else
        misuse(cache, object);
}
EXPORT_SYMBOL_GPL(prudence_cache_free);

void prudence_cache_free_deferred(struct prudence_cache *cache, void *object)
{
    struct slab *slab = slab_of_cache(cache, object);

    if (likely(slab))
        defer_object(slab, &cache->fast_percpu, object);
    else
        misuse(cache, object);
}
EXPORT_SYMBOL_GPL(prudence_cache_free_deferred);

/* Runs if either half cannot take the fast path. Defers the old object first. */
static noinline void *replace_slow(struct prudence_cache *cache, void *old, gfp_t gfp)
{
    prudence_cache_free_deferred(cache, old);
    return alloc(cache, gfp);
}

/* Turns interrupts off only once for the deferral and the allocation. */
void *prudence_cache_replace(struct prudence_cache *cache, void *old, gfp_t gfp)
{
    struct slab *slab = slab_of_cache(cache, old);
    void *object;

    if (unlikely(!slab) || unlikely(irqs_disabled()) || alloc_is_looked_at())
        return replace_slow(cache, old, gfp);
    local_irq_disable();
    if (unlikely(!os_percpu_append_here(&cache->fast_percpu, old))) {
        local_irq_enable();
        return replace_slow(cache, old, gfp);
    }
    object = os_percpu_pop_here(&cache->fast_percpu);
    local_irq_enable();
    return likely(object) ? ready(cache, object, gfp) : alloc_slow(cache, gfp);
}
EXPORT_SYMBOL_GPL(prudence_cache_replace);

int prudence_node_of(const void *object)
{
    const struct slab *slab = slab_of(object);

    return slab ? slab->node : NUMA_NO_NODE;
}
EXPORT_SYMBOL_GPL(prudence_node_of);

size_t prudence_ksize(const void *object)
{
    const struct slab *slab = slab_of(object);

    return slab ? slab_usable_bytes(slab) : 0;
}
EXPORT_SYMBOL_GPL(prudence_ksize);

/* ------------------------------------------------------------------------------------ any size */

/* Makes a block of all the pages that the page allocator gives for the size, a power of two. */
static noinline void *alloc_large(size_t size, gfp_t gfp)
{
    struct slab *slab;
    bool zeroed;

    if (refused_in_nmi() || is_refused(gfp) || size > KMALLOC_MAX_SIZE)
        return NULL;
    might_alloc(gfp);
    do
        slab = slab_large_make(kmalloc_blocks, PAGE_SIZE << get_order(size), os_page_size, false,
                               &zeroed, gfp);
    while (!slab && tries_again(gfp));
    if (slab && want_init_on_alloc(gfp))
        memset(slab->base, 0, slab_usable_bytes(slab));
    return slab ? slab->base : NULL;
}

void *prudence_kmalloc(size_t size, gfp_t gfp)
{
    return likely(size <= CLASS_SIZE_MAX) ? alloc(kmalloc_class(size), gfp)
                                          : alloc_large(size, gfp);
}
EXPORT_SYMBOL_GPL(prudence_kmalloc);

static __always_inline bool try_kfree(const void *object)
{
    struct slab *slab = slab_of(object);

    if (unlikely(!slab))
        return false;
    free_object(slab, &slab->fast_percpu, (void *)object);
    return true;
}

static __always_inline bool try_kfree_deferred(const void *object)
{
    struct slab *slab = slab_of(object);

    if (unlikely(!slab))
        return false;
    defer_object(slab, &slab->fast_percpu, (void *)object);
    return true;
}

void prudence_kfree(const void *object)
{
    if (unlikely(!try_kfree(object)))
        misuse(NULL, object);
}
EXPORT_SYMBOL_GPL(prudence_kfree);

void prudence_kfree_deferred(const void *object)
{
    if (unlikely(!try_kfree_deferred(object)))
        misuse(NULL, object);
}
EXPORT_SYMBOL_GPL(prudence_kfree_deferred);

bool prudence_try_kfree(const void *object)
{
    return try_kfree(object);
}
EXPORT_SYMBOL_GPL(prudence_try_kfree);

bool prudence_try_kfree_deferred(const void *object)
{
    return try_kfree_deferred(object);
}
EXPORT_SYMBOL_GPL(prudence_try_kfree_deferred);
