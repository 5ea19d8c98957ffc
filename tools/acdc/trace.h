/* SPDX-License-Identifier: MIT */
/*
 * Memory over time: a sample when the slowest thread's clock advances, each `stride` ticks. What is live
 * is added up from the threads' own counters; with one thread it is exact.
 */
#ifndef ACDC_TRACE_H
#define ACDC_TRACE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct run;

struct sample {
    uint64_t time;                     /* of the slowest thread */
    uint64_t ns;                       /* since the threads started */
    uint64_t live_objects, live_bytes; /* allocated, and the lifetime has not ended */
    uint64_t held_bytes;               /* with what waits to be free, or to expire; HELD_UNKNOWN */
    uint64_t resident_bytes;           /* of the process */
};

struct trace {
    struct sample *sample;
    uint64_t count, room;
    uint64_t stride; /* ticks */
    pthread_mutex_t lock;
};

/* Room for `samples` over `duration` ticks; false: no memory. */
bool trace_start(struct trace *trace, uint64_t samples, uint64_t duration);
void trace_end(struct trace *trace);

/* Takes a sample if its time has come. */
void trace_sample(struct run *run);

/*
 * The mean of a field's distance `offset` over the samples from time `from` on up to `to`; false: there
 * is no such sample, or one of them is unknown.
 */
bool trace_mean(const struct trace *trace, uint64_t from, uint64_t to, size_t offset, double *mean);

#endif /* ACDC_TRACE_H */
