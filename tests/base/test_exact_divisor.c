/* SPDX-License-Identifier: MIT */
/*
 * Exact division: for every stride, multiples give their quotient, and everything else (interior
 * offsets, offsets before the base, offsets with foreign high bits) gives a value above every
 * number of objects that a slab can have.
 */
#include "base/divide.h"
#include "support/slab_test.h"

#define STRIDES      40000
#define CAPACITY_MAX 65536u /* no slab has more objects */

static void multiples_give_their_quotient(void **state)
{
    static const uint64_t numbers[] = {0, 1, 2, 3, 7, 63, 64, 127, 128, 1000, CAPACITY_MAX - 1};

    (void)state;
    for (uint64_t stride = 1; stride <= STRIDES; stride++) {
        struct exact_divisor divisor = exact_divisor_of(stride);

        for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
            if (exact_quotient(numbers[i] * stride, divisor) != numbers[i])
                fail_msg("%u x stride %u", (unsigned)numbers[i], (unsigned)stride);
    }
}

static bool is_out(uint64_t offset, struct exact_divisor divisor)
{
    return exact_quotient(offset, divisor) >= CAPACITY_MAX;
}

static void interior_offsets_are_out(void **state)
{
    (void)state;
    for (uint64_t stride = 2; stride <= STRIDES; stride++) {
        struct exact_divisor divisor = exact_divisor_of(stride);
        const uint64_t inside[] = {1, 8, stride / 2, stride - 1, stride & -stride};

        for (unsigned i = 0; i < 5; i++)
            for (uint64_t object = 0; object < 200; object += 33)
                if (inside[i] % stride && !is_out(object * stride + inside[i], divisor))
                    fail_msg("stride %u, %u bytes inside", (unsigned)stride, (unsigned)inside[i]);
    }
}

static void every_interior_offset_of_small_strides_is_out(void **state)
{
    (void)state;
    for (uint64_t stride = 2; stride <= 512; stride++) {
        struct exact_divisor divisor = exact_divisor_of(stride);

        for (uint64_t offset = 0; offset < 16384; offset++)
            if (offset % stride && !is_out(offset, divisor))
                fail_msg("stride %u, offset %u", (unsigned)stride, (unsigned)offset);
    }
}

static void offsets_before_the_base_are_out(void **state)
{
    (void)state;
    for (uint64_t stride = 1; stride <= STRIDES; stride++) {
        struct exact_divisor divisor = exact_divisor_of(stride);
        const uint64_t before[] = {1, 16, stride, 2 * stride, 64, 4096, CAPACITY_MAX * stride};

        for (unsigned i = 0; i < 7; i++)
            if (!is_out(0 - before[i], divisor))
                fail_msg("stride %u, %u before", (unsigned)stride, (unsigned)before[i]);
    }
}

/* The page map does not look at address bits above the 47th; the quotient must. */
static void offsets_with_high_bits_are_out(void **state)
{
    (void)state;
    for (uint64_t stride = 1; stride <= STRIDES; stride++) {
        struct exact_divisor divisor = exact_divisor_of(stride);

        for (unsigned bit = 47; bit < 64; bit++)
            for (uint64_t object = 0; object < 3; object++)
                if (!is_out((UINT64_C(1) << bit) + object * stride, divisor))
                    fail_msg("stride %u, bit %u", (unsigned)stride, bit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multiples_give_their_quotient),
        cmocka_unit_test(interior_offsets_are_out),
        cmocka_unit_test(every_interior_offset_of_small_strides_is_out),
        cmocka_unit_test(offsets_before_the_base_are_out),
        cmocka_unit_test(offsets_with_high_bits_are_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
