/* SPDX-License-Identifier: MIT */
/* Which subjects a command line asks for. */
#ifndef BENCH_CHOICE_H
#define BENCH_CHOICE_H

#include "bench.h"

#define MAX_CHOICES 128

/* A subject, and the size of its batches where the name said so (NAME/N); 0: as --batch says. */
struct choice {
    const struct subject *subject;
    unsigned batch;
};

struct choices {
    struct choice choice[MAX_CHOICES];
    unsigned count;
};

/*
 * Those that `patterns` name, with commas between: "prudence*", "plain+*" followed by "/1024" for
 * batches of 1,024, "!prudence-free" for one less. False, after a message: a pattern names nothing,
 * or nothing that fits the scenario is left.
 */
bool choices_make(struct choices *choices, const char *patterns, const struct scenario *scenario);

/* Whether it can run in batches of that size: what allocates and retires in one call cannot. */
static inline bool choice_has_batches(const struct choice *choice, unsigned batch)
{
    return batch <= 1 || !choice->subject->family->operations->replace;
}

/* Takes out those whose allocator is not installed; `skip` is told each. */
void choices_skip_missing(struct choices *choices,
                          void (*skip)(const struct subject *subject, void *argument),
                          void *argument);

#endif /* BENCH_CHOICE_H */
