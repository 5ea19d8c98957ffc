/* SPDX-License-Identifier: MIT */
/* The fast path of prudence_malloc() and of the functions that mean the same, and what stands behind it (malloc.c). */
#ifndef HEAP_MALLOC_H
#define HEAP_MALLOC_H

#include "debug/profile.h"
#include "heap/object.h"
#include "heap/size_class.h"

/* For callers that have found no object: prudence_malloc() without its fast path. */
void *malloc_slow(size_t size);

/* For callers whose size has no open class: an object that is only to be counted, or malloc_slow(). */
void *malloc_counted(size_t size, size_t place);

/* The same of prudence_calloc(1, bytes). */
void *calloc_counted(size_t bytes, size_t place);

/* prudence_malloc(), for each function that means the same. */
static inline void *malloc_fast(size_t size)
{
    size_t place = size_place(size);
    struct prudence_cache *cache = size_class_open(place);
    void *object;

    if (unlikely(!cache))
        return malloc_counted(size, place);
    object = cache_alloc_fast(cache);
    return likely(object) ? object : malloc_slow(size);
}

#endif /* HEAP_MALLOC_H */
