/* SPDX-License-Identifier: MIT */
/* The subjects that a command line asks for. */
#ifndef BENCH_CHOICE_H
#define BENCH_CHOICE_H

#include "bench.h"

#define MAX_CHOICES 128

/* A subject, and the size of its batches if the name gives it (NAME/N); 0: as --batch says. */
struct choice {
    const struct subject *subject;
    unsigned batch;
};

struct choices {
    struct choice choice[MAX_CHOICES];
    unsigned count;
};

/*
 * Finds the subjects named by `patterns`, with commas between: "prudence*", "plain+*" followed by
 * "/1024" for batches of 1,024, "!prudence-free" to leave one out. Returns false, after a message,
 * if a pattern names no subject, or if no chosen subject fits the scenario.
 */
bool choices_make(struct choices *choices, const char *patterns, const struct scenario *scenario);

/* Returns whether the subject can run in batches of that size. A floor, and a subject that
 * allocates and retires in one call, cannot. */
static inline bool choice_has_batches(const struct choice *choice, unsigned batch)
{
    const struct family *family = choice->subject->family;

    return batch <= 1 || (!family->operations->replace && !family->floor);
}

/* Returns why the subject cannot run here, in memory that lasts until the next call; or NULL. */
const char *choice_missing(const struct subject *subject);

/* Removes subjects that cannot run here, and calls `skip` for each. */
void choices_skip_missing(struct choices *choices,
                          void (*skip)(const struct subject *subject, const char *why,
                                       void *argument),
                          void *argument);

#endif /* BENCH_CHOICE_H */
