/* SPDX-License-Identifier: MIT */
/* The slow side of every public function that takes or gives an object (see object.h): from the pointer to its slab, or a
 * report; then to the gate (slab/gate.c). */
#include "heap/object.h"

#include <errno.h>

#include "debug/guard.h"
#include "debug/profile.h"
#include "heap/background.h"
#include "heap/cache_life.h"
#include "slab/gate.h"
#include "slab/misuse.h"

__attribute__((noinline)) void *object_alloc_slower(struct prudence_cache *cache, size_t size,
                                                    const char *what)
{
    int saved_errno = errno;
    void *object;

    cache_require(cache, what);
    profile_entry = __builtin_frame_address(0);
    object = cache_alloc_slow(cache, size, OS_ALLOC_DEFAULT);
    profile_entry = NULL;
    background_come_by(NULL);
    errno = object ? saved_errno : ENOMEM;
    return object;
}

/* Saves no registers for what is only counted. */
void *object_alloc_slow(struct prudence_cache *cache, size_t size, const char *what)
{
    void *object = NULL;

    if (likely(cache)) {
        size = size ? size : cache->object_size;
        object = profile_alloc_counted(&cache->slab_percpu, size);
    }
    return object ? object : object_alloc_slower(cache, size, what);
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

struct slab *object_slab(const void *object, const char *what)
{
    struct slab *slab = slab_of(object);

    return likely(slab) ? slab : report(OBJECT_ANY_CACHE, object, what);
}

void object_require_unfreed(const struct slab *slab, const void *object, const char *what)
{
    const struct prudence_cache *cache = slab->cache;

    if (likely(os_percpu_rseq) && cache->percpu &&
        unlikely(os_percpu_top(&cache->percpu) == object))
        report_not_live(slab, object, false, what);
}

void object_free_slow(struct prudence_cache *cache, void *object, struct slab *slab,
                      const char *what)
{
    int saved_errno = errno;

    if (object) {
        cache_free_slow(likely(slab) ? slab : report(cache, object, what), object, what);
        background_come_by(__builtin_return_address(0));
    }
    errno = saved_errno;
}

void object_free_deferred_slow(struct prudence_cache *cache, void *object, struct slab *slab,
                               const char *what)
{
    int saved_errno = errno;

    if (object) {
        cache_free_deferred_slow(likely(slab) ? slab : report(cache, object, what), object, what);
        background_come_by(NULL);
    }
    errno = saved_errno;
}

/* `old` is deferred before memory is asked for. So it is not lost when there is none, and it may be what a grace
 * period then gives back. */
void *object_replace_slow(struct prudence_cache *cache, void *old, struct slab *slab,
                          const char *what)
{
    object_free_deferred_slow(cache, old, slab, what);
    return object_replace_checked(cache, old, NULL, what);
}

void *object_replace_checked(struct prudence_cache *cache, void *old, void *object,
                             const char *what)
{
    if (!object)
        object = object_alloc(cache, 0, what);
    return likely(object != old) || !object ? object : object_instead(cache, old, what);
}

/*
 * Either its grace period began and ended in between, or it had been free or deferred before, and another copy is where it was
 * deferred to now. So it is deferred once more: in the first case it is the caller's, as any object that was allocated; in
 * the second its copies meet in the ring, in its slab, or at the end of the process. Without this the caller would publish
 * an object that is handed out again later. A few times, because the other copy may come next.
 */
__attribute__((noinline)) void *object_instead(struct prudence_cache *cache, void *old,
                                               const char *what)
{
    void *object = old;

    for (unsigned i = 0; i < 3 && object == old; i++) {
        object_free_deferred(slab_of_cache(cache, old), cache, true, old, what);
        object = object_alloc(cache, 0, what);
    }
    return object;
}
