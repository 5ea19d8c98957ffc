/* SPDX-License-Identifier: MIT */
/* Pauses of work that recurs: none at first, then each twice as long, up to a most.
 *
 * ctest: not-with thread (one thread)
 */
#include "base/pace.h"

#include "support/suite.h"

#define FIRST 10
#define MOST  80

static bool is_time(struct growing_pauses *pauses, uint64_t now)
{
    return is_time_after_pause(pauses, now, FIRST, MOST);
}

TEST(pauses_double_up_to_the_most)
{
    static const uint64_t expected[] = {10, 20, 40, 80, 80, 80};
    struct growing_pauses pauses = {0};
    uint64_t now = 1000;

    assert_true(is_time(&pauses, now));
    for (unsigned i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_false(is_time(&pauses, now));
        now += expected[i];
        assert_false(is_time(&pauses, now - 1));
        assert_true(is_time(&pauses, now));
    }
}

TEST(a_pause_is_counted_from_the_work)
{
    struct growing_pauses pauses = {0};

    assert_true(is_time(&pauses, 0));
    assert_true(is_time(&pauses, 1000));
    assert_false(is_time(&pauses, 1019));
    assert_true(is_time(&pauses, 1020));
}

SUITE()
