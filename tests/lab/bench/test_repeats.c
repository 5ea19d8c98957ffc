/* SPDX-License-Identifier: MIT */
/* A run in a child reports its measurements, or why it failed. Results of repeats are gathered by
 * key.
 *
 * ctest: not-with thread (one thread)
 */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "repeats.h"
#include "support/suite.h"

static json_t *measures(const void *row)
{
    return json_pack("{s:f, s:{s:i}}", "ns", *(const double *)row, "latency", "p50", 7);
}

static json_t *says_nothing(const void *row)
{
    return NULL;
}

static json_t *hangs(const void *row)
{
    while (!row)
        pause();
    return NULL;
}

TEST(the_child_says_what_it_measured)
{
    const double row = 2.5;
    json_t *said = run_in_child(measures, &row, 60);

    assert_true(json_real_value(json_object_get(said, "ns")) == 2.5);
    json_decref(said);
}

static void expect_failure(json_t *said, const char *why)
{
    const char *failed = json_string_value(json_object_get(said, "failed"));

    assert_non_null(failed);
    assert_string_equal(failed, why);
    json_decref(said);
}

TEST(a_child_without_a_result_has_failed)
{
    expect_failure(run_in_child(says_nothing, NULL, 60), "no result");
}

TEST(a_child_that_hangs_is_killed)
{
    expect_failure(run_in_child(hangs, NULL, 1), strsignal(SIGALRM));
}

TEST(failed_repeats_have_no_numbers)
{
    const double row = 2.5;
    json_t *repeats[] = {run_in_child(measures, &row, 60), run_in_child(says_nothing, NULL, 60)};
    double values[2];

    assert_int_equal(repeats_values(repeats, 2, NULL, "ns", values), 1);
    assert_true(values[0] == 2.5);
    assert_int_equal(repeats_values(repeats, 2, "latency", "p50", values), 1);
    assert_true(values[0] == 7);
    assert_int_equal(repeats_values(repeats, 2, NULL, "cpu_ns", values), 0);
    json_decref(repeats[0]);
    json_decref(repeats[1]);
}

SUITE()
