/* SPDX-License-Identifier: MIT */
/*
 * The malloc interface, under the usual names, or under a prefix if another malloc must stay in
 * place (sanitizers): compile with -DPRUDENCE_MALLOC_PREFIX=some_. docs/reference/malloc.md
 * describes each function where the standards leave a choice.
 */
#ifndef PRELOAD_INTERFACE_H
#define PRELOAD_INTERFACE_H

#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <prudence/prudence.h>

#ifdef PRUDENCE_MALLOC_PREFIX
#define MALLOC_PASTE_(prefix, name) prefix##name
#define MALLOC_PASTE(prefix, name)  MALLOC_PASTE_(prefix, name)
#define MALLOC_NAME(name)           MALLOC_PASTE(PRUDENCE_MALLOC_PREFIX, name)
#else
#define MALLOC_NAME(name) name
#endif

/* Defines __libc_malloc for malloc, and so on. */
#if defined(__has_attribute)
#if __has_attribute(copy)
#define COPY_ATTRIBUTES(name) __attribute__((copy(name)))
#endif
#endif
#ifndef COPY_ATTRIBUTES
#define COPY_ATTRIBUTES(name)
#endif
#define LIBC_ALIAS(name)                                                                           \
    PRUDENCE_API extern __typeof(name) __libc_##name __attribute__((alias(#name)))                 \
    COPY_ATTRIBUTES(name)

/* malloc.c */
PRUDENCE_API void *MALLOC_NAME(malloc)(size_t size);
PRUDENCE_API void *MALLOC_NAME(calloc)(size_t count, size_t size);
PRUDENCE_API void *MALLOC_NAME(realloc)(void *object, size_t size);
PRUDENCE_API void *MALLOC_NAME(reallocarray)(void *object, size_t count, size_t size);
PRUDENCE_API void MALLOC_NAME(free)(void *object);
PRUDENCE_API void MALLOC_NAME(free_sized)(void *object, size_t size);
PRUDENCE_API void MALLOC_NAME(free_aligned_sized)(void *object, size_t alignment, size_t size);
PRUDENCE_API void MALLOC_NAME(cfree)(void *object);
PRUDENCE_API void *MALLOC_NAME(aligned_alloc)(size_t alignment, size_t size);
PRUDENCE_API int MALLOC_NAME(posix_memalign)(void **object, size_t alignment, size_t size);
PRUDENCE_API void *MALLOC_NAME(memalign)(size_t alignment, size_t size);
PRUDENCE_API void *MALLOC_NAME(valloc)(size_t size);
PRUDENCE_API void *MALLOC_NAME(pvalloc)(size_t size);
PRUDENCE_API size_t MALLOC_NAME(malloc_usable_size)(void *object);

/* info.c */
PRUDENCE_API int MALLOC_NAME(malloc_trim)(size_t pad);
PRUDENCE_API int MALLOC_NAME(mallopt)(int parameter, int value);
PRUDENCE_API struct mallinfo MALLOC_NAME(mallinfo)(void);
PRUDENCE_API struct mallinfo2 MALLOC_NAME(mallinfo2)(void);
PRUDENCE_API int MALLOC_NAME(malloc_info)(int options, FILE *file);
PRUDENCE_API void MALLOC_NAME(malloc_stats)(void);

#endif /* PRELOAD_INTERFACE_H */
