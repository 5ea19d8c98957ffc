/* SPDX-License-Identifier: MIT */
/* A temporary directory for files that the library writes. A group's set-up makes the directory and
 * the tear-down removes it; a test removes the files that it makes there. */
#ifndef TESTS_SUPPORT_DIRECTORY_H
#define TESTS_SUPPORT_DIRECTORY_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char directory[] = "/tmp/prudence-test-XXXXXX";

/* Returns the path of `name` in the directory, valid until the next call. */
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
