/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Types and small macros that every layer uses. No libc and no state, so this compiles in a kernel
 * unchanged.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/* For a variable that a fast path reads: the code addresses it directly, not through a table. */
#define HIDDEN __attribute__((visibility("hidden")))

/* For arrays on the stack that are written before they are read. Compilers that zero all others,
 * as a kernel's do, leave these alone. */
#if __has_attribute(uninitialized)
#define UNINITIALIZED __attribute__((uninitialized))
#else
#define UNINITIALIZED
#endif

/* Returns whether a field holds all numbers from 0 to `most`. For static assertions. */
#define FIELD_HOLDS(type, field, most)                                                             \
    ((uint64_t)(most) >> (8 * sizeof(((type *)0)->field) - 1) <= 1)

#define CACHE_LINE ((size_t)64)

/* For a function that is little more than a fast path. The function begins a cache line, so the
 * restartable sequence is aligned alike in every build, whatever the linker puts before it
 * (docs/adr/0040). */
#define FAST_ENTRY __attribute__((aligned(64)))

/* For a function that runs when the process starts or ends, or once for a cache. Linkers put these
 * functions together. So a process that does little has few pages of the library in memory. */
#define COLD __attribute__((cold))

/* Distance between words that different CPUs write often, because many processors fetch lines in
 * pairs. */
#define CACHE_LINES_APART (2 * CACHE_LINE)

static inline size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline size_t clamp_size(size_t value, size_t low, size_t high)
{
    return max_size(low, min_size(value, high));
}

static inline bool is_power_of_two(size_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* `alignment` is a power of two. Wraps for values near SIZE_MAX, which callers exclude. */
static inline size_t round_up(size_t value, size_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

static inline size_t round_up_to_power_of_two(size_t value)
{
    return value <= 1 ? 1 : (size_t)1 << (64 - __builtin_clzll(value - 1));
}

/* Fills a structure of a public interface. The caller was compiled with `size` bytes of it, the
 * library with `known`. Writes nothing past `size`, and zeroes the part that the library does
 * not know. */
static inline void give_sized(void *to, size_t size, const void *from, size_t known)
{
    __builtin_memset(to, 0, size);
    __builtin_memcpy(to, from, min_size(size, known));
}

#endif /* BASE_BASE_H */
