/* SPDX-License-Identifier: MIT */
/*
 * narrow() keeps the numbers that fit a narrower type. In a debug build a number that does not fit
 * ends the process, with a message that names the place. FIELD_HOLDS() gives the largest number of
 * a field.
 */
#include "support/slab_test.h"

struct fields {
    uint8_t byte;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
};

_Static_assert(FIELD_HOLDS(struct fields, byte, 255) && !FIELD_HOLDS(struct fields, byte, 256),
               "8 bits");
_Static_assert(FIELD_HOLDS(struct fields, two, 65535) && !FIELD_HOLDS(struct fields, two, 1u << 16),
               "16 bits");
_Static_assert(FIELD_HOLDS(struct fields, four, UINT32_MAX) &&
                   !FIELD_HOLDS(struct fields, four, UINT64_C(1) << 32),
               "32 bits");
_Static_assert(FIELD_HOLDS(struct fields, eight, UINT64_MAX), "64 bits");

TEST(numbers_that_fit_are_kept)
{
    volatile uint64_t most = UINT16_MAX;
    volatile int below = -1;

    assert_int_equal(narrow(uint16_t, most), UINT16_MAX);
    assert_int_equal(narrow(uint32_t, most), UINT16_MAX);
    assert_int_equal(narrow(int8_t, below), -1);
    assert_int_equal(narrow(uint8_t, most - UINT16_MAX), 0);
}

#ifdef PRUDENCE_DEBUG

TEST(a_number_that_does_not_fit_ends_the_process)
{
    volatile unsigned flags = 1u << 16;
    volatile int number = -1;

    expect_death(narrow(uint16_t, flags), "assertion failed: ", "flags", "test_narrow.c:");
    expect_death(narrow(uint32_t, number), "assertion failed: ", "number");
}

#endif

SUITE()
