/* SPDX-License-Identifier: MIT */
/*
 * Differences between C and C++ in inline functions and macros, which strict programs of both
 * compile.
 */
#ifndef PRUDENCE_LANGUAGE_H
#define PRUDENCE_LANGUAGE_H

#include <prudence/platform.h> /* first */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define PRUDENCE_CAST(type, value)    (reinterpret_cast<type>(value))
#define PRUDENCE_CONVERT(type, value) (static_cast<type>(value))
#define PRUDENCE_NULL                 nullptr
#else
#define PRUDENCE_CAST(type, value)    ((type)(value))
#define PRUDENCE_CONVERT(type, value) ((type)(value))
#define PRUDENCE_NULL                 NULL
#endif

/*
 * A function that programs inline. The library exports the same function under the same name, for
 * bindings of other languages (<prudence/bindings.h>).
 */
#define PRUDENCE_INLINE static inline

/*
 * Returns the `type` whose `member` is at `place`. The name of a type cannot be parenthesized here.
 */
#define PRUDENCE_CONTAINER_OF(place, type, member)                                                 \
    PRUDENCE_CAST(type *, /* NOLINT(bugprone-macro-parentheses) */                                 \
                  PRUDENCE_CAST(uintptr_t, place) - offsetof(type, member))

/* Set if the program is built with ThreadSanitizer, which sees nothing of a library that is not. */
#if defined(__SANITIZE_THREAD__)
#define PRUDENCE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PRUDENCE_THREAD_SANITIZER 1
#endif
#endif

/*
 * Informs ThreadSanitizer that an inlined reader has found an object by a link that the library
 * stored. The library has informed ThreadSanitizer of the object before, so everything that the
 * writer did until then happened before whatever this thread does now.
 */
#ifdef PRUDENCE_THREAD_SANITIZER
#ifdef __cplusplus
extern "C"
#endif
    void
    __tsan_acquire(void *address);
#define PRUDENCE_TELL_FOUND(object) __tsan_acquire(PRUDENCE_CAST(void *, object))
#else
#define PRUDENCE_TELL_FOUND(object) ((void)0)
#endif

#endif /* PRUDENCE_LANGUAGE_H */
