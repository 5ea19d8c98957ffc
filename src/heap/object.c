/* SPDX-License-Identifier: MIT */
/* The slow side of every public function that takes or gives an object (see object.h). */
#include <errno.h>

#include "heap/guard.h"
#include "heap/object.h"
#include "heap/watch.h"

void *object_alloc_slow(struct prudence_cache *cache, size_t size, const char *what)
{
    int saved_errno = errno;
    void *object;

    if (!cache)
        os_panic("%s: the cache is NULL", what);
    object = unlikely(cache->watched) ? watch_alloc(cache, size)
                                      : cache_alloc_slow(cache, OS_ALLOC_DEFAULT);
    errno = object ? saved_errno : ENOMEM;
    return object;
}

static __attribute__((noinline)) struct slab *report(const struct prudence_cache *cache,
                                                     const void *object, const char *what)
{
    if (!cache)
        os_panic("%s: the cache is NULL (object %p)", what, object);
    if (guard_interval)
        guard_report_freed(object, what);
    return slab_of_checked(cache == OBJECT_ANY_CACHE ? NULL : cache, object, what);
}

static struct slab *slab_or_panic(const struct prudence_cache *cache, const void *object,
                                  const char *what)
{
    struct slab *slab = cache == OBJECT_ANY_CACHE ? slab_of(object) : slab_of_cache(cache, object);

    return likely(slab) ? slab : report(cache, object, what);
}

static void free_slow(struct slab *slab, void *object, const char *what)
{
    if (unlikely(slab->cache->watched))
        watch_free(slab, object, what);
    else
        cache_free_slow(slab, object);
}

static void free_deferred_slow(struct slab *slab, void *object)
{
    if (unlikely(slab->cache->watched))
        watch_free_deferred(slab, object);
    else
        cache_free_deferred_slow(slab, object);
}

void object_free_slow(struct prudence_cache *cache, void *object, const char *what)
{
    int saved_errno = errno;

    if (object)
        free_slow(slab_or_panic(cache, object, what), object, what);
    errno = saved_errno;
}

void object_free_deferred_slow(struct prudence_cache *cache, void *object, const char *what)
{
    int saved_errno = errno;

    if (object)
        free_deferred_slow(slab_or_panic(cache, object, what), object);
    errno = saved_errno;
}
