/* SPDX-License-Identifier: MIT */
/* Slab caches of the explorer (caches.h). A cache is identified by the bytes of its objects; an
 * array stores the size in the line before it. */
#include "caches.h"

#include <prudence/structure.h>

#include "base/atomic.h"
#include "base/base.h"
#include "explorer.h"
#include "heap/heap.h"

#define ARRAYS 1u /* used instead of a number of bytes */

static uint64_t inside[EXPLORE_THREADS_MAX]; /* depth of nesting; stored to by the thread itself */

void enter(void)
{
    uint64_t *times = &inside[explore_self()];

    __atomic_store_n(times, load_relaxed(times) + 1, __ATOMIC_SEQ_CST);
}

void leave(void)
{
    uint64_t *times = &inside[explore_self()];

    store_release(times, load_relaxed(times) - 1);
}

struct prudence_domain *const explored_domain = (struct prudence_domain *)(uintptr_t)1;

/* The linker replaces the functions without __wrap_ by these, and calls of __real_ by those. */
void __wrap_prudence_domain_read_lock(struct prudence_domain *domain);
void __wrap_prudence_domain_read_unlock(struct prudence_domain *domain);
void __real_prudence_domain_read_lock(struct prudence_domain *domain);
void __real_prudence_domain_read_unlock(struct prudence_domain *domain);

void __wrap_prudence_domain_read_lock(struct prudence_domain *domain)
{
    if (domain == explored_domain)
        enter();
    else
        __real_prudence_domain_read_lock(domain);
}

void __wrap_prudence_domain_read_unlock(struct prudence_domain *domain)
{
    if (domain == explored_domain)
        leave();
    else
        __real_prudence_domain_read_unlock(domain);
}

struct prudence_cache *explored_cache(size_t bytes)
{
    return (struct prudence_cache *)(uintptr_t)(bytes ? bytes : ARRAYS);
}

/* The real function may write to the object (check=1 does). */
void *prudence_cache_alloc(struct prudence_cache *cache)
{
    void *object = explore_alloc_aligned((uintptr_t)cache, CACHE_LINE);

    explore_plain(object, 1, true, __builtin_return_address(0));
    return object;
}

/* The words are zero because this thread has written them. */
void *prudence_cache_alloc_block(struct prudence_cache *cache, size_t size, bool *zeroed)
{
    char *memory = explore_alloc_aligned(CACHE_LINE + size, CACHE_LINE);
    char *array = memory + CACHE_LINE;

    (void)cache;
    *(size_t *)(void *)memory = size;
    for (size_t at = 0; at < size; at += sizeof(uint64_t))
        explore_plain(array + at, 1, true, __builtin_return_address(0));
    *zeroed = true;
    return array;
}

void prudence_cache_free(struct prudence_cache *cache, void *object)
{
    if (cache == explored_cache(0))
        explore_free(object, *(size_t *)(void *)((char *)object - CACHE_LINE));
    else
        explore_free(object, (uintptr_t)cache);
}

void prudence_cache_free_deferred(struct prudence_cache *cache, void *object)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < EXPLORE_THREADS_MAX; i++)
        if (i != explore_self() && load_acquire(&inside[i]))
            return;
    prudence_cache_free(cache, object);
    explore_note();
}
