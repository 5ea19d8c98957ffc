/* SPDX-License-Identifier: MIT */
/*
 * The limit on the rate of messages counts each kind apart. A kind is a format, and the function
 * that is named where the message begins.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "os/os.h"
#include "report.h"
#include "support/suite.h"

#define NAMES 100
#define BURST 10 /* messages of a kind in 10 s */

static char names[NAMES][8];

static void report_each(unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        for (unsigned name = 0; name < NAMES; name++)
            os_report("%s: a message of this function", names[name]);
}

TEST(kinds_do_not_share_a_limit)
{
    int nowhere = open("/dev/null", O_WRONLY), before = dup(STDERR_FILENO);

    assert_true(nowhere >= 0 && before >= 0);
    for (unsigned name = 0; name < NAMES; name++)
        snprintf(names[name], sizeof names[name], "f%u", name);
    dup2(nowhere, STDERR_FILENO);
    report_each(BURST);
    dup2(before, STDERR_FILENO);
    assert_int_equal(posix_report_losses.too_many, 0);
}

TEST(each_kind_has_a_limit)
{
    report_each(1);
    assert_int_equal(posix_report_losses.too_many, NAMES);
}

SUITE()
