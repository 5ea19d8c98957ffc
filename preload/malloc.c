/* SPDX-License-Identifier: MIT */
/*
 * malloc and related functions. Fast paths are inlined here; everything else jumps to the
 * equivalent function, so malloc(x) and prudence_malloc(x) differ only as docs/reference/malloc.md
 * says.
 *
 * Locks and lifetimes are those of the functions called. The dynamic loader may call all of this
 * before any constructor has run, so nothing here has state.
 */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "heap/malloc.h"
#include "preload/interface.h"
#include "process.h"
#include "process/fork.h"

#ifndef PRUDENCE_MALLOC_PREFIX
const char process_has_our_malloc[] = "malloc";
#endif

static void *fail(int error)
{
    errno = error;
    return NULL;
}

FAST_ENTRY void *MALLOC_NAME(malloc)(size_t size)
{
    return malloc_fast(size);
}

void *MALLOC_NAME(calloc)(size_t count, size_t size)
{
    struct prudence_cache *cache;
    size_t bytes, place;
    void *object;

    if (unlikely(!checked_multiply(count, size, &bytes)))
        return fail(ENOMEM);
    place = size_place_within(bytes, CALLOC_CLASS_MAX);
    cache = size_class_open(place);
    if (unlikely(!cache))
        return malloc_counted_zeroed(bytes, place);
    object = os_percpu_pop(&cache->fast_percpu);
    return likely(object) ? memset(object, 0, bytes) : prudence_calloc(1, bytes);
}

FAST_ENTRY void MALLOC_NAME(free)(void *object)
{
    object_free(slab_of(object), OBJECT_ANY_CACHE, false, object, "free");
}

/*
 * Reallocates like realloc, but never frees the object. The C library's list of fork handlers needs
 * that. The list grows by realloc, but a forking thread calls handlers from the list without taking
 * its lock (glibc 2.36 and others). So that thread may be reading an old list. All lists kept have
 * together at most twice the size of the last.
 */
static __attribute__((noinline)) void *realloc_and_keep(void *object, size_t size)
{
    void *grown = prudence_malloc(size);

    return grown ? memcpy(grown, object, min_size(size, prudence_usable_size(object))) : NULL;
}

void *MALLOC_NAME(realloc)(void *object, size_t size)
{
    if (unlikely(fork_registrations) && object && size)
        return realloc_and_keep(object, size);
    if (unlikely(!size) && object) {
        object_free(slab_of(object), OBJECT_ANY_CACHE, false, object, "realloc");
        return NULL;
    }
    return prudence_realloc(object, size);
}

void *MALLOC_NAME(reallocarray)(void *object, size_t count, size_t size)
{
    size_t bytes;

    if (unlikely(!checked_multiply(count, size, &bytes)))
        return fail(ENOMEM);
    return MALLOC_NAME(realloc)(object, bytes);
}

void MALLOC_NAME(free_sized)(void *object, size_t size)
{
    malloc_free_sized(object, size, "free_sized");
}

void MALLOC_NAME(free_aligned_sized)(void *object, size_t alignment, size_t size)
{
    malloc_free_aligned_sized(object, alignment, size, "free_aligned_sized");
}

/* No longer in headers, but old programs need it. */
void MALLOC_NAME(cfree)(void *object)
{
    MALLOC_NAME(free)(object);
}

void *MALLOC_NAME(aligned_alloc)(size_t alignment, size_t size)
{
    return prudence_aligned_alloc(alignment, size);
}

int MALLOC_NAME(posix_memalign)(void **object, size_t alignment, size_t size)
{
    int saved_errno = errno;
    void *allocated;

    if (alignment % sizeof(void *) || !is_power_of_two(alignment))
        return EINVAL;
    allocated = prudence_aligned_alloc(alignment, size);
    errno = saved_errno;
    if (!allocated)
        return ENOMEM;
    *object = allocated;
    return 0;
}

/* Accepts any alignment and rounds it up to a power of two, as glibc's does. */
void *MALLOC_NAME(memalign)(size_t alignment, size_t size)
{
    if (unlikely(alignment > SIZE_MAX / 2 + 1))
        return fail(EINVAL);
    return prudence_aligned_alloc(round_up_to_power_of_two(alignment), size);
}

void *MALLOC_NAME(valloc)(size_t size)
{
    return prudence_aligned_alloc(os_page_size, size);
}

void *MALLOC_NAME(pvalloc)(size_t size)
{
    size_t bytes;

    if (unlikely(!checked_round_up(size, os_page_size, &bytes)))
        return fail(ENOMEM);
    return prudence_aligned_alloc(os_page_size, bytes);
}

size_t MALLOC_NAME(malloc_usable_size)(void *object)
{
    return malloc_usable(object);
}

#ifndef PRUDENCE_MALLOC_PREFIX
/* glibc's names for the same functions, which glibc exports and a few debugging libraries call. */
LIBC_ALIAS(malloc);
LIBC_ALIAS(calloc);
LIBC_ALIAS(realloc);
LIBC_ALIAS(free);
LIBC_ALIAS(memalign);
LIBC_ALIAS(valloc);
LIBC_ALIAS(pvalloc);
#endif
