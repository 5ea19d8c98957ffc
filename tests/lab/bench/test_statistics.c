/* SPDX-License-Identifier: MIT */
/*
 * Medians and quartiles of unsorted numbers are one of the numbers, or between the two nearest.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

#include "statistics.h"

TEST(a_median_is_in_the_middle)
{
    double numbers[] = {5, -1, 3, 4, 2};

    assert_true(numbers_median(numbers, 0) == 0);
    assert_true(numbers_median(numbers, 1) == 5);
    assert_true(numbers_median(numbers, 2) == 2);
    assert_true(numbers_median(numbers, 5) == 3);
    for (unsigned i = 1; i < 5; i++)
        assert_true(numbers[i - 1] < numbers[i]);
    assert_true(numbers_median(numbers, 4) == 2.5);
}

TEST(a_quantile_is_between_the_two_nearest)
{
    double numbers[] = {5, 1, 3, 9, 2};

    assert_true(numbers_quantile(numbers, 0, 0.25) == 0);
    assert_true(numbers_quantile(numbers, 5, 0) == 1);
    assert_true(numbers_quantile(numbers, 5, 0.25) == 2);
    assert_true(numbers_quantile(numbers, 5, 0.875) == 7);
    assert_true(numbers_quantile(numbers, 5, 1) == 9);
}

SUITE()
