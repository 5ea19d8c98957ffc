/* SPDX-License-Identifier: MIT */
/* A run: makes and fills a table, lets threads work on it, and measures that. */
#ifndef BENCH_STRUCTURES_RUN_H
#define BENCH_STRUCTURES_RUN_H

#include <jansson.h>
#include <stdbool.h>

#include "subjects.h"

#define THREADS_MAX 64

struct row {
    const struct subject_entry *entry;
    bool strings, zipf;
    uint64_t size;
    unsigned updates, threads, hits, writers, walk;
    double seconds;
};

/* For run_in_child: a process makes one run. Returns NULL if there was no operation, and
 * {"not_measured": why} if the subject has refused some. */
json_t *row_run(const void *row);

#endif /* BENCH_STRUCTURES_RUN_H */
