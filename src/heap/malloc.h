/* SPDX-License-Identifier: MIT */
/* What stands behind the fast paths of prudence_malloc() and of the functions that mean the same (malloc.c). */
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

#endif /* HEAP_MALLOC_H */
