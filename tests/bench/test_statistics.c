/* SPDX-License-Identifier: MIT */
/* The median of numbers in any order: the one in the middle, or the mean of the two. */
#include "support/slab_test.h"

#include "statistics.h"

static void a_median_is_in_the_middle(void **state)
{
    double numbers[] = {5, -1, 3, 4, 2};

    (void)state;
    assert_true(numbers_median(numbers, 0) == 0);
    assert_true(numbers_median(numbers, 1) == 5);
    assert_true(numbers_median(numbers, 2) == 2);
    assert_true(numbers_median(numbers, 5) == 3);
    for (unsigned i = 1; i < 5; i++)
        assert_true(numbers[i - 1] < numbers[i]);
    assert_true(numbers_median(numbers, 4) == 2.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_median_is_in_the_middle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
