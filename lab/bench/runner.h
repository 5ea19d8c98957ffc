/* SPDX-License-Identifier: MIT */
/* Runs in child processes, and their combined results. */
#ifndef BENCH_RUNNER_H
#define BENCH_RUNNER_H

#include "bench.h"

/* A subject in a configuration. */
struct row {
    struct config config;
    const struct subject *subject;
    json_t *repeats; /* array of each run's result */
    json_t *merged;  /* object: their medians; rows_merge */
};

/*
 * Returns whether a repeat of a merged row is in its medians. Repeats of rounds from which the
 * host took CPU time are "stolen" (stolen.h), and skipped unless all are.
 */
static inline bool repeat_counts(const struct row *row, const json_t *repeat)
{
    return json_is_true(json_object_get(row->merged, "stolen")) ||
           !json_is_true(json_object_get(repeat, "stolen"));
}

/* Returns whether the subject's allocator is available; asks a child, once for each allocator. */
bool runner_has(const struct allocator *allocator);

/*
 * Runs each row `repeat` times, round-robin, so that a slow minute of the machine affects all
 * alike. Adds to each result which share of the CPUs' time was stolen in that round ("steal"), and
 * whether that is too much ("stolen"). Returns how many runs failed (out of memory is a result, not
 * a failure).
 */
unsigned runner_run(struct row *rows, unsigned count, unsigned repeat);

/* report_json.c: medians, of the rounds that count; the whole document. */
void rows_merge(struct row *rows, unsigned count);
json_t *document_create(const struct scenario *scenario);
void document_add(json_t *document, const struct row *rows, unsigned count);
void document_skip(json_t *document, const struct subject *subject, const char *why);

/* report_text.c: a table on standard output. */
void table_head(const struct scenario *scenario);
void table_row(const struct row *row);

#endif /* BENCH_RUNNER_H */
