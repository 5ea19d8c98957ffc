/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Arithmetic of sizes that come from outside. Returns false if the result does not fit a size_t;
 * *result must then not be used. Every size that a caller of the public interface chose goes
 * through one of these before anything is added to it, multiplied with it or rounded. Sizes that
 * have been compared with a limit (OBJECT_SIZE_MAX, CHECKED_SIZE_MAX) may use round_up and plain
 * operators. No libc, no state.
 */
#ifndef BASE_CHECKED_H
#define BASE_CHECKED_H

#include "base/base.h"

/* Most bytes of an object, because the difference of two pointers into an object is a ptrdiff_t. */
#define CHECKED_SIZE_MAX ((size_t)PTRDIFF_MAX)

static inline bool checked_add(size_t a, size_t b, size_t *result)
{
    return !__builtin_add_overflow(a, b, result);
}

static inline bool checked_multiply(size_t a, size_t b, size_t *result)
{
    return !__builtin_mul_overflow(a, b, result);
}

/* `alignment` is a power of two. */
static inline bool checked_round_up(size_t size, size_t alignment, size_t *result)
{
    bool fits = checked_add(size, alignment - 1, result);

    *result &= ~(alignment - 1);
    return fits;
}

#endif /* BASE_CHECKED_H */
