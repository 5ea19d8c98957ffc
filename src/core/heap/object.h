/* SPDX-License-Identifier: MIT */
/*
 * The common part of the public functions. The fast path is inlined and everything else is behind
 * one tail call, so a fast path saves no registers and does not touch errno.
 */
#ifndef HEAP_OBJECT_H
#define HEAP_OBJECT_H

#include "heap/heap.h"
#include "heap/nested.h"

/* Frame address of the library's function that allocates, so that a trace can skip the calls below;
 * NULL if unknown. Valid only while that function runs. */
extern __thread const void *object_entry;

/* Serve what the cache's own sequence does not (object.c): by the line of the number that this
 * thread holds or the line of a cache with a destructor, then by a line that it locks, then by the
 * gate. Report misuse and preserve errno, except that alloc sets it. `cache` is the cache that the
 * caller named, or OBJECT_ANY_CACHE if the function takes none. `slab` is the result of slab_of or
 * slab_of_cache, NULL for misuse and for a NULL object, which these functions distinguish. `what`
 * names the public function. `size` is the size asked for, or 0 for a whole object. */
#define OBJECT_ANY_CACHE ((struct prudence_cache *)-1)
void *object_alloc_aside(struct prudence_cache *cache, size_t size, const char *what);
/* The last step alone. */
void *object_alloc_by_gate(struct prudence_cache *cache, size_t size, const char *what);
void object_free_aside(struct prudence_cache *cache, void *object, struct slab *slab,
                       const char *what);
void object_free_deferred_aside(struct prudence_cache *cache, void *object, struct slab *slab,
                                const char *what);
void *object_replace_aside(struct prudence_cache *cache, void *old, struct slab *slab,
                           const char *what);
/* Reports the allocation of an object from a cache of blocks, which have no size of their own.
 * Returns NULL with errno EINVAL. */
void *object_refuse_block(const struct prudence_cache *cache, const char *what);
/* Checks `object`, allocated after `old` was deferred. Allocates one if it is NULL. */
void *object_replace_checked(struct prudence_cache *cache, void *old, void *object,
                             const char *what);
/* Called when the allocation after a deferral returned the same object. Reports the object if it
 * was free or deferred before. */
void object_check_return(struct prudence_cache *cache, const void *old, const char *what);

/* Returns whether the call is nested (heap/nested.c). If not, first frees and defers the objects
 * that nested calls have put off. */
void object_settle(void);
static inline bool object_call_is_nested(void)
{
    if (call_is_nested())
        return true;
    if (unlikely(load_relaxed(&nested_put_off)))
        object_settle();
    return false;
}

/* Reports an object that cannot have been allocated with `size`, unless it was reallocated
 * (malloc.c). Returns if the process is to go on (harmless.h). */
void malloc_require_size(struct slab *slab, const void *object, size_t size, const char *what);

/* Reports an object that is on top of this CPU's stack, so already free. Sees no other freed
 * object. */
void object_require_unfreed(const struct slab *slab, const void *object, const char *what);

bool object_is_on_top(const struct slab *slab, const void *object);

/* Returns the slab of an object, or reports misuse if no slab has the object. */
struct slab *object_slab(const void *object, const char *what);

/* Pops as the owner of a line, where there are no sequences; else returns NULL. */
static inline void *object_pop_as_owner(const struct prudence_cache *cache)
{
    void *lines = cache_owner_lines(cache);

    return unlikely(lines) ? os_percpu_locked_pop(lines) : NULL;
}

static inline void *object_alloc(struct prudence_cache *cache, size_t size, const char *what)
{
    void *object = likely(cache) ? os_percpu_pop(&cache->fast_percpu) : NULL;

    return likely(object) ? object : object_alloc_aside(cache, size, what);
}

/* Uses the cache's lines if the caller names the cache, so that the next loads do not wait until
 * the slab is found. The arguments are constants where this is inlined. */
static inline void *const *object_lines(const struct slab *slab, struct prudence_cache *cache,
                                        bool named)
{
    return named ? &cache->fast_percpu : &slab->fast_percpu;
}

static inline void object_free(struct slab *slab, struct prudence_cache *cache, bool named,
                               void *object, const char *what)
{
    if (unlikely(!slab) || unlikely(!os_percpu_push(object_lines(slab, cache, named), object)))
        object_free_aside(cache, object, slab, what);
}

static inline void object_free_deferred(struct slab *slab, struct prudence_cache *cache, bool named,
                                        void *object, const char *what)
{
    if (unlikely(!slab) || unlikely(!os_percpu_append(object_lines(slab, cache, named), object)))
        object_free_deferred_aside(cache, object, slab, what);
}

/* Defers and allocates. The second sequence finds the cache's words and the CPU's line where the
 * first put them. A cache whose slab was found is not NULL. An object that comes back at once is
 * checked (object_check_return). */
static inline void *object_replace(struct prudence_cache *cache, void *old, const char *what)
{
    struct slab *slab = slab_of_cache(cache, old);
    void *object;

    if (unlikely(!slab) || unlikely(!os_percpu_append_and_pop(&cache->fast_percpu, old, &object)))
        return object_replace_aside(cache, old, slab, what);
    return likely(object) && likely(object != old)
               ? object
               : object_replace_checked(cache, old, object, what);
}

#endif /* HEAP_OBJECT_H */
