/* SPDX-License-Identifier: MIT */
/*
 * Lets other threads come to rest before a fork. A thread that starts takes locks of
 * AddressSanitizer's runtime, and a child that is forked in that time never gets them. Without that
 * sanitizer there is nothing to wait for.
 */
#ifndef TESTS_SUPPORT_SETTLE_H
#define TESTS_SUPPORT_SETTLE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SETTLE_TRIES 200 /* of a millisecond: some tests have threads that never rest */

/* Returns whether a thread, found in /proc/self/task, sleeps or has ended. */
static inline bool thread_rests(const char *name)
{
    char path[300], stat[512] = "";
    const char *state;
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%s/stat", name);
    if (!(file = fopen(path, "r")))
        return true;
    if (!fgets(stat, sizeof stat, file))
        stat[0] = '\0';
    fclose(file);
    state = strrchr(stat, ')'); /* the state comes after the name */
    return !state || state[2] == 'S';
}

static inline bool other_threads_rest(void)
{
    DIR *tasks = opendir("/proc/self/task");
    bool rest = true;

    if (!tasks)
        return true;
    for (struct dirent *task; (task = readdir(tasks));)
        if (task->d_name[0] != '.' && atoi(task->d_name) != gettid())
            rest &= thread_rests(task->d_name);
    closedir(tasks);
    return rest;
}

static inline void threads_settle(void)
{
#if defined(__SANITIZE_ADDRESS__)
    for (unsigned i = 0; i < SETTLE_TRIES && !other_threads_rest(); i++)
        usleep(1000);
#endif
}

#endif /* TESTS_SUPPORT_SETTLE_H */
