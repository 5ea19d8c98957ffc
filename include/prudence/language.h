/* SPDX-License-Identifier: MIT */
/* What differs between C and C++ in inline functions and macros, which strict programs of both compile. */
#ifndef PRUDENCE_LANGUAGE_H
#define PRUDENCE_LANGUAGE_H

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

/* The `type` whose `member` is at `place`. A name of a type cannot stand in parentheses here. */
#define PRUDENCE_CONTAINER_OF(place, type, member)                                                 \
    PRUDENCE_CAST(type *, /* NOLINT(bugprone-macro-parentheses) */                                 \
                  PRUDENCE_CAST(uintptr_t, place) - offsetof(type, member))

#endif /* PRUDENCE_LANGUAGE_H */
