/* SPDX-License-Identifier: MIT */
/* CPU time that the host took, as the first line of /proc/stat says it.
 *
 * ctest: not-with sanitizers (one thread, and a parser)
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stolen.h"
#include "support/suite.h"

TEST(guests_are_counted_once)
{
    struct stolen ticks;

    assert_true(stolen_parse(&ticks, "cpu  1 20 300 4000 50000 600000 7000000 80000000 9 9\n"));
    assert_int_equal(ticks.stolen, 80000000);
    assert_int_equal(ticks.all, 87654321);
}

TEST(other_lines_say_nothing)
{
    struct stolen ticks = {1, 1};

    assert_false(stolen_parse(&ticks, "cpu0 1 2 3 4 5 6 7 8 9 10\n"));
    assert_int_equal(ticks.all, 0);
    assert_false(stolen_parse(&ticks, "cpu  1 2 3 4\n"));
    assert_false(stolen_parse(&ticks, ""));
}

TEST(the_share_is_of_all_cpus_time)
{
    const struct stolen begun = {10, 1000}, ended = {13, 1100};

    assert_true(stolen_between(&begun, &ended) == 0.03);
    assert_true(stolen_between(&begun, &begun) == 0);
    assert_true(stolen_between(&ended, &begun) == 0);
    assert_true(stolen_between(&(struct stolen){0, 0}, &ended) == 0);
}

/* Each call takes the next line, and at the end the last one again. */
TEST(lines_can_be_injected)
{
    char path[] = "/tmp/prudence-stat-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    struct stolen ticks;

    fputs("cpu 0 0 0 100 0 0 0 0\ncpu 0 0 0 150 0 0 0 50\n", file);
    fclose(file);
    setenv("PRUDENCE_BENCH_STAT", path, 1);
    assert_true(stolen_now(&ticks));
    assert_int_equal(ticks.all, 100);
    for (int i = 0; i < 2; i++) {
        assert_true(stolen_now(&ticks));
        assert_int_equal(ticks.all, 200);
        assert_int_equal(ticks.stolen, 50);
    }
    unlink(path);
    assert_false(stolen_now(&ticks));
    unsetenv("PRUDENCE_BENCH_STAT");
    assert_true(stolen_now(&ticks));
}

SUITE()
