/* SPDX-License-Identifier: MIT */
/* A directory of the test's own, for files that the library is to write: made and removed by a group's set-up and tear-down. Whoever makes a
 * file there removes it. */
#ifndef TESTS_SUPPORT_DIRECTORY_H
#define TESTS_SUPPORT_DIRECTORY_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char directory[] = "/tmp/prudence-test-XXXXXX";

/* Until the next call. */
static const char *path_in(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static int directory_make(void **state)
{
    (void)state;
    return !mkdtemp(directory);
}

static int directory_remove(void **state)
{
    (void)state;
    return rmdir(directory);
}

#endif /* TESTS_SUPPORT_DIRECTORY_H */
