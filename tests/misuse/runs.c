/* SPDX-License-Identifier: MIT */
/*
 * Ways for a process to go on after the misuse. A run that allocates again reports an object that
 * was allocated twice, and goes on, because the library may still notice.
 */
#include "misuse.h"

#include <stdlib.h>

#define ALLOCATED     1000 /* objects that the run "on" allocates */
#define ALLOCATED_BIG 250  /* the same for objects above 4,096 bytes */

static int by_address(const void *left, const void *right)
{
    const char *a = *(char *const *)left, *b = *(char *const *)right;

    return (a > b) - (a < b);
}

/* Allocates on each CPU that the cell used, reports objects that were allocated twice or that the
 * cell still has, and frees the new objects. */
static void allocate_and_free(struct subject *subject, size_t count)
{
    static void *mine[2 * OBJECTS_MAX], *all[3 * OBJECTS_MAX];
    size_t here = count, live = 0;

    say("allocation", NULL);
    count += subject->other_cpu ? here : 0;
    for (size_t i = 0; i < count; i++) {
        if (i == here)
            stay_on_cpu(false);
        all[live++] = mine[i] = allocate(subject);
    }
    for (size_t i = 0; i < subject->count; i++)
        if (subject->objects[i])
            all[live++] = subject->objects[i];
    qsort(all, live, sizeof all[0], by_address);
    for (size_t i = 1; i < live; i++)
        if (all[i] == all[i - 1])
            say("twice", all[i]);
    for (size_t i = 0; i < count; i++)
        give(subject, mine[i]);
}

static void end(struct subject *subject)
{
    (void)subject;
    say("end", NULL);
    exit(0);
}

static void return_from_main(struct subject *subject)
{
    (void)subject;
    say("end", NULL);
}

static void trim(struct subject *subject)
{
    reader_leaves();
    say("trim", NULL);
    synchronize(subject);
    prudence_trim();
    if (subject->by_cache)
        prudence_cache_shrink(subject->cache);
    allocate_and_free(subject, subject->count);
    return_from_main(subject);
}

static void go_on(struct subject *subject)
{
    reader_leaves();
    say("synchronize", NULL);
    synchronize(subject);
    allocate_and_free(subject, subject->size > 4096 ? ALLOCATED_BIG : ALLOCATED);
    return_from_main(subject);
}

const struct run runs[] = {
    {"exit", end},
    {"return", return_from_main},
    {"trim", trim},
    {"on", go_on},
};
const size_t run_count = sizeof runs / sizeof runs[0];
