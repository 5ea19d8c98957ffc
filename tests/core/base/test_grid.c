/* SPDX-License-Identifier: MIT */
/*
 * Grid. For every stride that a slab can have, the grid finds and numbers the starts of the
 * objects, and refuses all other offsets (inside objects, before the base, after the last object,
 * far away).
 *
 * ctest: not-with thread (one thread)
 */
#include "base/grid.h"
#include "support/slab_test.h"

#define STRIDES 40000

/* Returns the largest number of objects that a slab of this stride can have. */
static uint64_t count_for(uint64_t stride)
{
    uint64_t count = (UINT64_C(256) << 10) / stride;

    return count > 8 ? count : 8;
}

TEST(starts_are_numbered)
{
    for (uint64_t stride = 2; stride <= STRIDES; stride++) {
        uint64_t count = count_for(stride);
        struct grid grid = grid_of(stride, count);
        const uint64_t numbers[] = {0, 1, 2, 3, count / 3, count / 2, count - 2, count - 1};

        for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
            if (!grid_has(grid, numbers[i] * stride) ||
                grid_index(grid, numbers[i] * stride) != numbers[i])
                fail_msg("%u x stride %u", (unsigned)numbers[i], (unsigned)stride);
    }
}

TEST(interior_offsets_are_refused)
{
    for (uint64_t stride = 2; stride <= STRIDES; stride++) {
        uint64_t count = count_for(stride);
        struct grid grid = grid_of(stride, count);
        const uint64_t inside[] = {1, 8, stride / 2, stride - 1, stride & -stride};

        for (unsigned i = 0; i < 5; i++)
            for (uint64_t object = 0; object < count; object += 33)
                if (inside[i] % stride && grid_has(grid, object * stride + inside[i]))
                    fail_msg("stride %u, %u bytes inside", (unsigned)stride, (unsigned)inside[i]);
    }
}

TEST(every_offset_of_small_strides_is_judged)
{
    for (uint64_t stride = 2; stride <= 512; stride++) {
        uint64_t count = 16384 / stride;
        struct grid grid = grid_of(stride, count);

        for (uint64_t offset = 0; offset < 20000; offset++)
            if (grid_has(grid, offset) != (offset % stride == 0 && offset / stride < count))
                fail_msg("stride %u, offset %u", (unsigned)stride, (unsigned)offset);
    }
}

TEST(offsets_before_and_behind_are_refused)
{
    for (uint64_t stride = 2; stride <= STRIDES; stride++) {
        uint64_t count = count_for(stride);
        struct grid grid = grid_of(stride, count);
        const uint64_t distances[] = {0, 1, 16, stride, 2 * stride, 64, 4096, GRID_BYTES_MAX / 2};

        for (unsigned i = 0; i < 8; i++)
            if ((distances[i] && grid_has(grid, 0 - distances[i])) ||
                grid_has(grid, count * stride + distances[i]))
                fail_msg("stride %u, %u off", (unsigned)stride, (unsigned)distances[i]);
    }
}

/* A large block has one object of any size. */
TEST(one_object_may_have_any_size)
{
    const uint64_t sizes[] = {2, 4096, 12288, UINT64_C(1) << 32, (UINT64_C(1) << 40) + 4096};

    for (unsigned i = 0; i < 5; i++) {
        struct grid grid = grid_of(sizes[i], 1);

        assert_true(grid_has(grid, 0));
        assert_int_equal(grid_index(grid, 0), 0);
        assert_false(grid_has(grid, 1));
        assert_false(grid_has(grid, sizes[i] / 2));
        assert_false(grid_has(grid, UINT64_C(1) << 40));
        assert_false(grid_has(grid, sizes[i]));
        assert_false(grid_has(grid, UINT64_MAX));
    }
}

SUITE()
