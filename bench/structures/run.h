/* SPDX-License-Identifier: MIT */
/* One run: a table is made and filled, threads work on it, and what that took. */
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

/* For run_in_child: a process makes one run. NULL: there was not one operation. {"not_measured": why}: the subject has refused some. */
json_t *row_run(const void *row);

#endif /* BENCH_STRUCTURES_RUN_H */
