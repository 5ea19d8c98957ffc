/* SPDX-License-Identifier: MIT */
/*
 * What the public functions have in common: the fast path inlined, everything else behind one tail
 * call, so that a fast path saves no registers and does not touch errno.
 */
#ifndef HEAP_OBJECT_H
#define HEAP_OBJECT_H

#include "heap/heap.h"
#include "heap/nested.h"
#include "slab/fast_path.h"

/* object.c. These report misuse, and keep errno (alloc sets it). `cache` is the one that the caller
 * named, OBJECT_ANY_CACHE where the function takes none. `slab` is what slab_of or slab_of_cache
 * found for the object: NULL for misuse and for a NULL object, which these functions tell apart.
 * `what` names the public function, `size` is what its caller asked for; 0: a whole object. */
#define OBJECT_ANY_CACHE ((struct prudence_cache *)-1)
void *object_alloc_slow(struct prudence_cache *cache, size_t size, const char *what);
/* The same of a caller that has found no object which is only to be counted. */
void *object_alloc_slower(struct prudence_cache *cache, size_t size, const char *what);
void object_free_slow(struct prudence_cache *cache, void *object, struct slab *slab,
                      const char *what);
void object_free_deferred_slow(struct prudence_cache *cache, void *object, struct slab *slab,
                               const char *what);
void *object_replace_slow(struct prudence_cache *cache, void *old, struct slab *slab,
                          const char *what);
/* `old` was deferred, and `object` allocated then; NULL: no fast path had one. */
void *object_replace_checked(struct prudence_cache *cache, void *old, void *object,
                             const char *what);
/* The object that was deferred came back by the allocation after it: reports it, if it was free or deferred before. */
void object_check_return(struct prudence_cache *cache, const void *old, const char *what);

/* Whether the call is nested (heap/nested.c). If not, what nested calls have put off is done now. */
void object_settle(void);
static inline bool object_call_is_nested(void)
{
    if (call_is_nested())
        return true;
    if (unlikely(load_relaxed(&nested_put_off)))
        object_settle();
    return false;
}

/* malloc.c: reports an object that was not allocated with `size`, and never reallocated. */
void object_require_size(struct slab *slab, const void *object, size_t size, const char *what);

/* Reports an object that is freed already, as far as that is seen at a glance: it is on top of this CPU's stack. */
void object_require_unfreed(const struct slab *slab, const void *object, const char *what);

/* The slab of an object; misuse, if it has none. */
struct slab *object_slab(const void *object, const char *what);

static inline void *object_alloc(struct prudence_cache *cache, size_t size, const char *what)
{
    void *object = likely(cache) ? cache_alloc_fast(cache) : NULL;

    return likely(object) ? object : object_alloc_slow(cache, size, what);
}

/* If the caller names the cache, its lines are used, so that what follows does not wait for the slab to be found;
 * constants where this is inlined. */
static inline void *const *object_lines(const struct slab *slab, struct prudence_cache *cache,
                                        bool named)
{
    return named ? &cache->fast_percpu : &slab->fast_percpu;
}

static inline void object_free(struct slab *slab, struct prudence_cache *cache, bool named,
                               void *object, const char *what)
{
    if (unlikely(!slab) || unlikely(!cache_free_fast(object_lines(slab, cache, named), object)))
        object_free_slow(cache, object, slab, what);
}

static inline void object_free_deferred(struct slab *slab, struct prudence_cache *cache, bool named,
                                        void *object, const char *what)
{
    if (unlikely(!slab) ||
        unlikely(!cache_free_deferred_fast(object_lines(slab, cache, named), object)))
        object_free_deferred_slow(cache, object, slab, what);
}

/* A deferral and an allocation: the second sequence finds the cache's words and the CPU's line where the first left
 * them. A cache whose slab was found is not NULL. An object that comes back at once is looked at (object_check_return). */
static inline void *object_replace(struct prudence_cache *cache, void *old, const char *what)
{
    struct slab *slab = slab_of_cache(cache, old);
    void *object;

    if (unlikely(!slab) || unlikely(!os_percpu_append_and_pop(&cache->fast_percpu, old, &object)))
        return object_replace_slow(cache, old, slab, what);
    return likely(object) && likely(object != old)
               ? object
               : object_replace_checked(cache, old, object, what);
}

#endif /* HEAP_OBJECT_H */
