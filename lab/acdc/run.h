/* SPDX-License-Identifier: MIT */
/* A run: all threads, their common data, and the results. */
#ifndef ACDC_RUN_H
#define ACDC_RUN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "draw.h"
#include "model.h"
#include "pace.h"
#include "times.h"
#include "trace.h"

struct mutator;

struct run {
    const struct settings *settings;
    const struct model *model;
    struct mutator *mutator; /* one for each thread */
    struct pace pace;
    struct trace trace;
    pthread_barrier_t ready, started, finished, drained;
    uint64_t began_ns;
    uint64_t done; /* threads that have reached the duration */
};

struct result {
    bool out_of_memory;
    double seconds, cpu_seconds; /* of all threads at work, without the final release */
    double ticks_per_ns;
    uint64_t rounds, allocated_objects, allocated_bytes, freed_objects, freed_bytes;
    uint64_t shared_objects, received_objects, deferred_objects, reads, writes;
    uint64_t live_objects, live_bytes; /* when the last thread was done */
    uint64_t class_objects[MOST_SIZE + 1], class_bytes[MOST_SIZE + 1];
    uint64_t *liveness_objects;
    struct times times[OPERATIONS];
    uint64_t base_resident_bytes, end_resident_bytes, peak_resident_bytes;
    uint64_t drained_resident_bytes; /* when everything was free */
    uint64_t books_bytes;            /* ACDC's own, included in the figures above */
};

/*
 * Runs it. `progress`: prints a line on standard error. Returns false if something is missing,
 * named in `why`; nothing has run then. The memory of result and run stays until the process ends.
 */
bool run_all(const struct settings *settings, const struct model *model, bool progress,
             struct run *run, struct result *result, char *why, size_t size);

/* Stores the live objects and bytes now, from the threads' counters. */
void run_live(const struct run *run, uint64_t *objects, uint64_t *bytes);

#endif /* ACDC_RUN_H */
