/* SPDX-License-Identifier: MIT */
/* Fast paths of prudence_malloc() and equivalent functions, and the slow paths (malloc.c). */
#ifndef HEAP_MALLOC_H
#define HEAP_MALLOC_H

#include "heap/counted.h"
#include "heap/object.h"
#include "heap/size_class.h"

/* Larger objects that shall be zero get pages of their own, often known to be zero. */
#define CALLOC_CLASS_MAX MEDIUM_MAX

/* Works as prudence_malloc() without the fast path, which found no object. */
void *malloc_slow(size_t size);

/* Allocates an object that is only to be counted, else calls malloc_slow(). Called if the size has
 * no open class. */
void *malloc_counted(size_t size, size_t place);

/* Does the same for prudence_calloc(1, bytes). */
void *malloc_counted_zeroed(size_t bytes, size_t place);

/* Implements prudence_malloc() and each function with the same meaning. */
static inline void *malloc_fast(size_t size)
{
    size_t place = size_place(size);
    struct prudence_cache *cache = size_class_open(place);
    void *object;

    if (unlikely(!cache))
        return malloc_counted(size, place);
    object = os_percpu_pop(&cache->fast_percpu);
    return likely(object) ? object : malloc_slow(size);
}

/* Implement free_sized and free_aligned_sized of C23, and malloc_usable_size, which programs of
 * others call: a wrong argument is reported as heap/harmless.h says. */
void malloc_free_sized(void *object, size_t size, const char *what);
void malloc_free_aligned_sized(void *object, size_t alignment, size_t size, const char *what);
size_t malloc_usable(const void *object);

/* Implements prudence_malloc_deletes(). Only a library that has malloc has it. */
bool malloc_deletes(void) HIDDEN __attribute__((weak));

#endif /* HEAP_MALLOC_H */
