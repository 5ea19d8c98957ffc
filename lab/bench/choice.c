/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "choice.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "floors.h"
#include "runner.h"

#define MOST_IN_BATCH (1 << 20)

/* Returns whether the family has the loops that the scenario counts, and that of its readers. */
static bool has_loops(const struct family *family, const struct scenario *scenario)
{
    const unsigned needed = (scenario->counted & ~HELPERS) | COUNTS(scenario->reader);

    for (unsigned loop = 0; loop < LOOP_COUNT; loop++)
        if (needed & COUNTS(loop) && !family->loops[loop])
            return false;
    return true;
}

static bool fits(const struct subject *subject, const struct scenario *scenario)
{
    if (subject->family->floor)
        return scenario->compares;
    return (subject->family->deferring || !scenario->deferring) &&
           has_loops(subject->family, scenario);
}

static const char *why_not(const struct subject *subject, const struct scenario *scenario)
{
    if (fits(subject, scenario))
        return "has no batches";
    if (subject->family->floor)
        return "is a floor of pairs";
    return subject->family->deferring ? "has readers that name single objects" : "defers nothing";
}

static bool is_chosen(const struct choices *choices, struct choice choice)
{
    for (unsigned i = 0; i < choices->count; i++) {
        if (choices->choice[i].subject == choice.subject &&
            choices->choice[i].batch == choice.batch)
            return true;
    }
    return false;
}

static void add(struct choices *choices, struct choice choice)
{
    if (choices->count < MAX_CHOICES && !is_chosen(choices, choice))
        choices->choice[choices->count++] = choice;
}

static void take_out(struct choices *choices, unsigned index)
{
    memmove(&choices->choice[index], &choices->choice[index + 1],
            (--choices->count - index) * sizeof *choices->choice);
}

static void take_out_subject(struct choices *choices, const struct subject *subject)
{
    for (unsigned i = choices->count; i-- > 0;) {
        if (choices->choice[i].subject == subject)
            take_out(choices, i);
    }
}

/* Turns "NAME/N" into NAME. Returns false, after a message, if N is no batch size in this
 * scenario. */
static bool take_batch(char *pattern, const struct scenario *scenario, unsigned *batch)
{
    char *slash = strchr(pattern, '/');
    uint64_t value = 0;

    *batch = 0;
    if (!slash)
        return true;
    *slash = '\0';
    if (!strchr(scenario->options, 'b')) {
        fprintf(stderr, "prudence-bench: --subject: '%s/%s': %s has no batches\n", pattern,
                slash + 1, scenario->name);
        return false;
    }
    if (!number_parse(slash + 1, 1, MOST_IN_BATCH, &value)) {
        fprintf(stderr, "prudence-bench: --subject: '%s/%s': '%s' is not a number from 1 to %d\n",
                pattern, slash + 1, slash + 1, MOST_IN_BATCH);
        return false;
    }
    *batch = (unsigned)value;
    return true;
}

static bool apply(struct choices *choices, char *pattern, const struct scenario *scenario)
{
    bool less = *pattern == '!', known = false;
    unsigned count, batch;
    const struct subject *table = subjects(&count);

    pattern += less;
    if (!strcmp(pattern, "all"))
        pattern[0] = '*', pattern[1] = '\0';
    if (!take_batch(pattern, scenario, &batch))
        return false;
    for (unsigned i = 0; i < count; i++) {
        struct choice choice = {.subject = &table[i], .batch = batch};

        if (fnmatch(pattern, table[i].name, 0))
            continue;
        known = true;
        if (less)
            take_out_subject(choices, &table[i]);
        else if (fits(&table[i], scenario) && choice_has_batches(&choice, batch))
            add(choices, choice);
        else if (!strcmp(pattern, table[i].name))
            fprintf(stderr, "prudence-bench: %s %s: not for %s\n", pattern,
                    why_not(&table[i], scenario), scenario->name);
    }
    if (!known)
        fprintf(stderr, "prudence-bench: unknown subject '%s' (prudence-bench --list shows all)\n",
                pattern);
    return known;
}

bool choices_make(struct choices *choices, const char *patterns, const struct scenario *scenario)
{
    char *copy = strdup(patterns), *rest = copy, *pattern;
    bool good = true;

    choices->count = 0;
    while ((pattern = strsep(&rest, ",")))
        good &= apply(choices, pattern, scenario);
    free(copy);
    if (good && !choices->count)
        fprintf(stderr, "prudence-bench: there is no subject to measure\n");
    return good && choices->count;
}

const char *choice_missing(const struct subject *subject)
{
    static char why[64];

    if (subject->family->needs_sequences && !floors_have_sequences())
        return "there are no restartable sequences here";
    if (runner_has(subject->allocator))
        return NULL;
    snprintf(why, sizeof why, "%s is not installed", subject->allocator->preload);
    return why;
}

void choices_skip_missing(struct choices *choices,
                          void (*skip)(const struct subject *subject, const char *why,
                                       void *argument),
                          void *argument)
{
    for (unsigned i = 0; i < choices->count;) {
        const struct subject *subject = choices->choice[i].subject;

        const char *why = choice_missing(subject);

        if (!why) {
            i++;
            continue;
        }
        skip(subject, why, argument);
        take_out_subject(choices, subject);
    }
}
