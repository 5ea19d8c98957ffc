/* SPDX-License-Identifier: MIT */
/*
 * Tries every size and alignment that a caller of malloc()'s family chooses, at every boundary
 * (support/boundary_sizes.h). A call returns memory of the full size, or fails with the right errno
 * and changes nothing. Compiled twice, like test_interface.c.
 */
#include <stdbool.h>

#include <errno.h>
#include <string.h>

#include "preload/interface.h"
#include "support/boundary_sizes.h"
#include "support/suite.h"

#define M(name) MALLOC_NAME(name)

/* Hides a result from the compiler, which knows these functions and drops useless calls. */
static void *volatile sink;

static void *keep(void *object)
{
    sink = object;
    return sink;
}

static bool is_right(char *block, size_t size, int error)
{
    if (!block) {
        assert_int_equal(error, ENOMEM);
        assert_true(size > BOUNDARY_SURE);
        return false;
    }
    assert_true(size < BOUNDARY_NEVER);
    assert_true(M(malloc_usable_size)(block) >= size);
    for (size_t at = 0; at < size; at += BOUNDARY_MIB)
        block[at] = 'x';
    if (size)
        block[size - 1] = 'x';
    return true;
}

static void try_alloc(void *(*alloc)(size_t size), size_t size)
{
    void *block;

    errno = 0;
    block = keep(alloc(size));
    if (is_right(block, size, errno))
        M(free)(block);
}

static void *realloc_of_nothing(size_t size)
{
    return M(realloc)(NULL, size);
}

TEST(allocating)
{
    void *(*const functions[])(size_t size) = {M(malloc), M(valloc), M(pvalloc),
                                               realloc_of_nothing};

    for (unsigned k = 0; k < sizeof functions / sizeof functions[0]; k++)
        for (unsigned i = 0; i < BOUNDARY_SIZES; i++)
            try_alloc(functions[k], boundary_size(i));
}

static size_t product(size_t count, size_t size)
{
    size_t bytes;

    return __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes;
}

static void *reallocarray_of_nothing(size_t count, size_t size)
{
    return M(reallocarray)(NULL, count, size);
}

static void try_product(void *(*alloc)(size_t count, size_t size), size_t count, size_t size)
{
    size_t bytes = product(count, size);
    void *block;

    if (bytes > BOUNDARY_SURE && bytes < (size_t)1 << 44)
        return; /* calloc() might write all of it */
    errno = 0;
    block = keep(alloc(count, size));
    if (is_right(block, bytes, errno))
        M(free)(block);
}

TEST(allocating_products)
{
    for (unsigned i = 0; i < BOUNDARY_FACTORS; i++) {
        for (unsigned k = 0; k < BOUNDARY_FACTORS; k++) {
            try_product(M(calloc), boundary_factors[i], boundary_factors[k]);
            try_product(reallocarray_of_nothing, boundary_factors[i], boundary_factors[k]);
        }
    }
    for (unsigned i = 0; i < BOUNDARY_SIZES; i++)
        try_product(M(calloc), boundary_size(i), 1);
}

static bool is_power_of_two(size_t value)
{
    return value && !(value & (value - 1));
}

/* Returns the alignment that memalign() uses; 0 means refused. */
static size_t rounded_alignment(size_t alignment)
{
    size_t rounded = 1;

    while (rounded && rounded < alignment)
        rounded *= 2;
    return rounded;
}

static void check_aligned(void *block, size_t alignment, size_t size, int error)
{
    if (!block && alignment > BOUNDARY_SURE) {
        assert_int_equal(error, ENOMEM);
        return;
    }
    if (!is_right(block, size, error))
        return;
    assert_true((uintptr_t)block % alignment == 0);
    M(free)(block);
}

static void try_aligned(size_t alignment, size_t size)
{
    void *block = &block, *unchanged = block;
    int error;

    errno = 0;
    error = M(posix_memalign)(&block, alignment, size);
    assert_int_equal(errno, 0);
    if (error)
        assert_ptr_equal(block, unchanged);
    if (!is_power_of_two(alignment) || alignment < sizeof(void *))
        assert_int_equal(error, EINVAL);
    else
        check_aligned(error ? NULL : block, alignment, size, error);

    errno = 0;
    block = keep(M(aligned_alloc)(alignment, size));
    if (!is_power_of_two(alignment))
        assert_true(!block && errno == EINVAL);
    else
        check_aligned(block, alignment, size, errno);

    errno = 0;
    block = keep(M(memalign)(alignment, size));
    if (!rounded_alignment(alignment))
        assert_true(!block && errno == EINVAL);
    else
        check_aligned(block, rounded_alignment(alignment), size, errno);
}

TEST(allocating_aligned)
{
    static const size_t sizes[] = {0, 1, 100, 4097, 40000, PTRDIFF_MAX, SIZE_MAX - 4095, SIZE_MAX};
    static const size_t alignments[] = {
        1, 16, 48, 64, 4096, 8192, (size_t)2 << 20, (size_t)1 << 62, (size_t)1 << 63, SIZE_MAX};

    for (unsigned i = 0; i < BOUNDARY_ALIGNMENTS; i++)
        for (unsigned k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
            try_aligned(boundary_alignment(i), sizes[k]);
    for (unsigned i = 0; i < BOUNDARY_SIZES; i++)
        for (unsigned k = 0; k < sizeof alignments / sizeof alignments[0]; k++)
            try_aligned(alignments[k], boundary_size(i));
}

static bool is_filled(const char *block, size_t size, char with)
{
    for (size_t at = 0; at < size; at++)
        if (block[at] != with)
            return false;
    return true;
}

/* Calls realloc() or reallocarray(). */
static void try_realloc(size_t old_size, size_t count, size_t size, bool array)
{
    size_t bytes = product(count, size), kept = old_size < bytes ? old_size : bytes;
    char *old = keep(M(malloc)(old_size)), *block;

    memset(old, 'o', old_size);
    errno = 0;
    block = keep(array ? M(reallocarray)(old, count, size) : M(realloc)(old, bytes));
    if (!bytes) { /* freed */
        assert_null(block);
        return;
    }
    if (!block) {
        assert_int_equal(errno, ENOMEM);
        assert_true(bytes > BOUNDARY_SURE);
        assert_true(is_filled(old, old_size, 'o'));
        M(free)(old);
        return;
    }
    assert_true(is_filled(block, kept, 'o'));
    is_right(block, bytes, 0);
    M(free)(block);
}

TEST(reallocating)
{
    static const size_t old_sizes[] = {1, 100, 32768, 65536, 3 * BOUNDARY_MIB};
    char *small[64];

    for (unsigned i = 0; i < 64; i++)
        memset(small[i] = keep(M(malloc)(16)), 's', 16);
    for (unsigned k = 0; k < sizeof old_sizes / sizeof old_sizes[0]; k++)
        for (unsigned i = 0; i < BOUNDARY_SIZES; i++)
            try_realloc(old_sizes[k], boundary_size(i), 1, i % 2);
    for (unsigned k = 0; k < BOUNDARY_FACTORS; k++)
        for (unsigned i = 0; i < BOUNDARY_FACTORS; i++)
            try_realloc(65536, boundary_factors[k], boundary_factors[i], true);
    for (unsigned i = 0; i < 64; i++) { /* no neighbour was overwritten */
        assert_true(is_filled(small[i], 16, 's'));
        M(free)(small[i]);
    }
}

SUITE()
