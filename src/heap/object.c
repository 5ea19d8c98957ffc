/* SPDX-License-Identifier: MIT */
/* The slow side of every public function that takes or gives an object (see object.h). */
#include <errno.h>

#include "heap/background.h"
#include "heap/cache_life.h"
#include "heap/guard.h"
#include "heap/object.h"
#include "heap/watch.h"
#include "slab/terms.h"

static void *alloc_unwatched(struct prudence_cache *cache)
{
    void *object = NULL;

    if (load_relaxed(&cache->fast_lines) != cache->lines && uses_sequences(cache))
        object = os_percpu_pop(&cache->lines);
    return object ? object : cache_alloc_slow(cache, OS_ALLOC_DEFAULT);
}

void *object_alloc_slow(struct prudence_cache *cache, size_t size, const char *what)
{
    int saved_errno = errno;
    void *object;

    cache_require(cache, what);
    object = unlikely(cache->watched) ? watch_alloc(cache, size) : alloc_unwatched(cache);
    background_come_by(NULL);
    errno = object ? saved_errno : ENOMEM;
    return object;
}

static __attribute__((noinline)) struct slab *report(const struct prudence_cache *cache,
                                                     const void *object, const char *what)
{
    if (cache != OBJECT_ANY_CACHE)
        cache_require(cache, what);
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

struct slab *object_slab(const void *object, const char *what)
{
    return slab_or_panic(OBJECT_ANY_CACHE, object, what);
}

static void free_for_good(struct slab *slab, void *object, const char *what)
{
    if (unlikely(slab->cache->watched))
        watch_free(slab, object, what);
    else
        cache_free_slow(slab, object);
}

static void defer_for_good(struct slab *slab, void *object)
{
    if (unlikely(slab->cache->watched))
        watch_free_deferred(slab, object);
    else
        cache_free_deferred_slow(slab, object);
}

/* Of an object in a slab that has terms; it has no dates (any more). */
static void free_past_terms(struct slab *slab, void *object, const char *what)
{
    struct prudence_cache *cache = slab->cache;

    if (!uses_sequences(cache) || !os_percpu_push(&cache->lines, object))
        free_for_good(slab, object, what);
}

static void defer_past_terms(struct slab *slab, void *object)
{
    struct prudence_cache *cache = slab->cache;

    if (!uses_sequences(cache) || !os_percpu_append(&cache->lines, object))
        defer_for_good(slab, object);
}

static void free_slow(struct slab *slab, void *object, const char *what)
{
    if (likely(!slab_terms(slab))) {
        free_for_good(slab, object, what);
        return;
    }
    slab_term_end(slab, object, what);
    free_past_terms(slab, object, what);
}

static void free_deferred_slow(struct slab *slab, void *object, const char *what)
{
    if (likely(!slab_terms(slab))) {
        defer_for_good(slab, object);
        return;
    }
    slab_term_end(slab, object, what);
    defer_past_terms(slab, object);
}

void object_free_expired(struct slab *slab, void *object, bool deferred)
{
    int saved_errno = errno;

    if (deferred)
        defer_past_terms(slab, object);
    else
        free_past_terms(slab, object, "expiration");
    errno = saved_errno;
}

void object_free_slow(struct prudence_cache *cache, void *object, const char *what)
{
    int saved_errno = errno;

    if (object) {
        free_slow(slab_or_panic(cache, object, what), object, what);
        background_come_by(__builtin_return_address(0));
    }
    errno = saved_errno;
}

void object_free_deferred_slow(struct prudence_cache *cache, void *object, const char *what)
{
    int saved_errno = errno;

    if (object) {
        free_deferred_slow(slab_or_panic(cache, object, what), object, what);
        background_come_by(NULL);
    }
    errno = saved_errno;
}

/* `old` is in the books before memory is asked for, so it is not lost when there is none; and it may be what a grace
 * period then gives back. */
void *object_replace_slow(struct prudence_cache *cache, void *old, const char *what)
{
    object_free_deferred_slow(cache, old, what);
    return object_alloc(cache, 0, what);
}
