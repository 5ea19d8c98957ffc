/* SPDX-License-Identifier: MIT */
/* CPU time that other processes take. The line of /proc/stat is read as proc(5) describes, and the
 * time of this process does not count.
 *
 * ctest: not-with sanitizers (one thread, and a parser)
 */

#include "others.h"
#include "support/suite.h"

TEST(busy_is_all_but_idle_and_waiting)
{
    assert_int_equal(busy_ticks("cpu  1 20 300 999999 999999 4000 50000 600000 0 0\n"), 654321);
    assert_int_equal(busy_ticks("cpu  1 20 300 999999 999999 4000 50000 600000\n"), 654321);
}

TEST(other_lines_say_nothing)
{
    assert_int_equal(busy_ticks(""), 0);
    assert_int_equal(busy_ticks("intr 1 2 3 4 5 6 7 8\n"), 0);
    assert_int_equal(busy_ticks("cpu  1 2 3 4\n"), 0);
    assert_int_equal(busy_ticks("cpu0 1 2 3 4 5 6 7 8 9 10\n"), 0);
}

/* In the second case the clock of this process counts more than the ticks of the machine. */
TEST(own_time_is_not_theirs)
{
    const struct others begun = {0, 5000, 1000}, ended = {1000, 7500, 3000};

    assert_true(others_between(&begun, &ended) == 0.5);
    assert_true(others_between(&begun, &(struct others){1000, 6000, 3000}) == 0);
}

SUITE()
