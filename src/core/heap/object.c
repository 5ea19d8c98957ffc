/* SPDX-License-Identifier: MIT */
/* What the public functions do for objects that the cache's own sequence does not serve (object.h).
 * They find the object's slab or report misuse, try the lines that this thread can own, then call
 * the gate (slab/gate.c). */
#include "heap/object.h"

#include <errno.h>

#include "heap/background.h"
#include "heap/cache_life.h"
#include "heap/cold.h"
#include "heap/counted.h"
#include "heap/upcalls.h"
#include "slab/gate.h"
#include "slab/misuse.h"
#include "slab/recent_frees.h"
#include "slab/reuse.h"

__thread const void *object_entry;

void *object_refuse_block(const struct prudence_cache *cache, const char *what)
{
    os_report("%s: cache '%s' has blocks of any size; call prudence_cache_alloc_block", what,
              cache->name);
    errno = EINVAL;
    return NULL;
}

/* The caller of this thread's outermost free that is in the slow path; NULL: none is. Functions of
 * the C library that a program has replaced may allocate and free in there. */
static __thread const void *free_caller __attribute__((tls_model("initial-exec")));

__attribute__((noinline)) void *object_alloc_by_gate(struct prudence_cache *cache, size_t size,
                                                     const char *what)
{
    int saved_errno = errno;
    void *object;

    cache_require(cache, what);
    if (unlikely(!load_relaxed(&cache->percpu)))
        return object_refuse_block(cache, what);
    object_entry = __builtin_frame_address(0);
    nested_depth++;
    object = gate_alloc(cache, size, OS_ALLOC_DEFAULT);
    object_entry = NULL;
    background_visit(free_caller);
    nested_depth--;
    errno = object ? saved_errno : ENOMEM;
    return object;
}

/* A separate function, so that allocations that are only counted save no registers. */
static __attribute__((noinline)) void *alloc_by_lock(struct prudence_cache *cache, size_t size,
                                                     const char *what)
{
    void *object = NULL;

    if (likely(cache)) {
        object = object_pop_as_owner(cache);
        if (unlikely(object))
            return object;
        size = size ? size : cache->object_size;
        object = counted_pop(&cache_body_of(cache)->slab_percpu, size);
    }
    return object ? object : object_alloc_by_gate(cache, size, what);
}

/* Objects on the stacks of caches with a destructor need none. */
void *object_alloc_aside(struct prudence_cache *cache, size_t size, const char *what)
{
    void *object = NULL;

    if (likely(cache) && unlikely(cache->flags & CACHE_DESTRUCTED))
        object = os_percpu_pop(&cache->body->aside_percpu);
    else if (likely(cache))
        object = os_percpu_biased_pop(cache_owner_lines(cache));
    return likely(object) ? object : alloc_by_lock(cache, size, what);
}

/* Returns the slab of an object in a common cache (cold.c). Reports all other objects. */
static __attribute__((noinline)) struct slab *object_report(const struct prudence_cache *cache,
                                                            const void *object, const char *what)
{
    if (cache != OBJECT_ANY_CACHE) {
        struct slab *slab;

        cache_require(cache, what);
        slab = cold_slab_of(cache, object, what);
        if (slab)
            return slab;
    }
    if (heap_upcalls.unknown)
        heap_upcalls.unknown(object, what);
    if (nested_has(object)) {
        os_report_misuse(
            "%s: %p was allocated by a nested call of malloc, so it belongs to no cache", what,
            object);
        os_misuse();
    }
    return misuse_checked_slab(cache == OBJECT_ANY_CACHE ? NULL : cache, object, what);
}

struct slab *object_slab(const void *object, const char *what)
{
    struct slab *slab = slab_of(object);

    return likely(slab) ? slab : object_report(OBJECT_ANY_CACHE, object, what);
}

bool object_is_on_top(const struct slab *slab, const void *object)
{
    const struct prudence_cache *cache = slab->cache;

    return cache->percpu && unlikely(os_percpu_top(&cache->percpu) == object);
}

void object_require_unfreed(const struct slab *slab, const void *object, const char *what)
{
    if (unlikely(object_is_on_top(slab, object)))
        misuse_report_not_live(slab, object, false, what);
}

void object_settle(void)
{
    struct put_off *next = nested_take_all();

    while (next) {
        struct put_off end = nested_take(next);
        struct slab *slab = slab_of(end.object);

        if (end.deferred)
            object_free_deferred(slab, OBJECT_ANY_CACHE, false, end.object, end.what);
        else
            object_free(slab, OBJECT_ANY_CACHE, false, end.object, end.what);
        next = end.next;
    }
}

/* Does cache_owner_lines() for an object of this slab, which may be NULL. Reads nothing else
 * where there are sequences. */
static inline void *owner_lines(const struct slab *slab)
{
    void *lines = likely(slab) ? cache_owner_lines(slab->cache) : NULL;

    return unlikely(lines) && !slab->alone && !load_relaxed(&slab->extensions) ? lines : NULL;
}

/* Returns whether nested_end() took the object. The library itself names the cache wherever it
 * holds a lock or a CPU, so such a call is not nested. */
static bool is_put_off(const struct prudence_cache *cache, const struct slab *slab, void *object,
                       bool deferred, const char *what)
{
    return cache == OBJECT_ANY_CACHE &&
           nested_end(slab, object, object_call_is_nested(), deferred, what);
}

static __attribute__((noinline)) void free_by_lock(struct prudence_cache *cache, void *object,
                                                   struct slab *slab, const char *what)
{
    void *lines = owner_lines(slab);
    const void *outer;
    int saved_errno;

    if (unlikely(lines) && os_percpu_locked_push(lines, object))
        return;
    outer = free_caller;
    if (likely(!outer))
        free_caller = __builtin_return_address(0);
    saved_errno = errno;
    if (object && !is_put_off(cache, slab, object, false, what)) {
        gate_free(likely(slab) ? slab : object_report(cache, object, what), object, what);
        background_visit(free_caller);
    }
    errno = saved_errno;
    free_caller = outer;
}

void object_free_aside(struct prudence_cache *cache, void *object, struct slab *slab,
                       const char *what)
{
    if (!os_percpu_biased_push(owner_lines(slab), object))
        free_by_lock(cache, object, slab, what);
}

static __attribute__((noinline)) void free_deferred_by_lock(struct prudence_cache *cache,
                                                            void *object, struct slab *slab,
                                                            const char *what)
{
    int saved_errno = errno;
    void *lines = owner_lines(slab);

    if (unlikely(lines) && os_percpu_locked_append(lines, object))
        return;
    if (object && !is_put_off(cache, slab, object, true, what)) {
        gate_free_deferred(likely(slab) ? slab : object_report(cache, object, what), object, what);
        background_visit(free_caller);
    }
    errno = saved_errno;
}

/* Defers the object of a cache with a destructor, which does not read deferrals, unless the slab
 * has other extensions. Afterwards the slab may be gone. */
static inline bool append_aside(const struct slab *slab, void *object)
{
    const struct prudence_cache *cache = slab->cache;
    unsigned flags = cache->flags;

    /* Acquire: pairs with begin_in_cache(), which closes the path before it adds an extension. */
    if (load_relaxed(&slab->extensions) != load_acquire(&cache->slab_extensions) ||
        !os_percpu_append(&cache->body->aside_percpu, object))
        return false;
    reuse_put_off(flags);
    return true;
}

void object_free_deferred_aside(struct prudence_cache *cache, void *object, struct slab *slab,
                                const char *what)
{
    if (likely(slab) && unlikely(slab->cache->flags & CACHE_DESTRUCTED) &&
        likely(append_aside(slab, object)))
        return;
    if (!os_percpu_biased_append(owner_lines(slab), object))
        free_deferred_by_lock(cache, object, slab, what);
}

/* Defers `old` before asking for memory. So `old` is not lost if there is none, and may be among
 * the objects that a grace period then makes safe. */
void *object_replace_aside(struct prudence_cache *cache, void *old, struct slab *slab,
                           const char *what)
{
    object_free_deferred_aside(cache, old, slab, what);
    return object_replace_checked(cache, old,
                                  likely(cache) ? os_percpu_pop(&cache->fast_percpu) : NULL, what);
}

void *object_replace_checked(struct prudence_cache *cache, void *old, void *object,
                             const char *what)
{
    if (!object)
        object = object_alloc_aside(cache, 0, what);
    if (unlikely(object == old) && object)
        object_check_return(cache, old, what);
    return object;
}

#define RETURN_LOOKED 32

/*
 * Checks an object that an allocation returned right after it was deferred. Either a grace period
 * began and ended in between, or the object had been free or deferred before and another copy is
 * still in its old place. The second case is reported, because the object will be handed out once
 * more.
 */
__attribute__((noinline)) void object_check_return(struct prudence_cache *cache, const void *old,
                                                   const char *what)
{
    bool latent;

    if (unlikely(recent_frees_have(cache, old, RETURN_LOOKED, &latent)))
        misuse_report_double(slab_known(old), old, latent, what);
}
