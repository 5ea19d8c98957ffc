/* SPDX-License-Identifier: MIT */
/*
 * Memory over time: a sample when the slowest thread's clock advances, each `stride` ticks. Live
 * bytes are the sum of the threads' own counters; with one thread they are exact.
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
    uint64_t live_objects, live_bytes; /* allocated, with a lifetime that has not ended */
    /* including bytes that wait to be free, or to expire; HELD_UNKNOWN */
    uint64_t held_bytes;
    uint64_t resident_bytes; /* of the process */
};

struct trace {
    struct sample *sample;
    uint64_t count, room;
    uint64_t stride; /* ticks */
    pthread_mutex_t lock;
};

/* Makes room for `samples` over `duration` ticks; returns false if there is no memory. */
bool trace_start(struct trace *trace, uint64_t samples, uint64_t duration);
void trace_end(struct trace *trace);

/* Takes a sample if one is due. */
void trace_sample(struct run *run);

/*
 * Computes the mean of the field at `offset` over the samples from time `from` up to `to`; returns
 * false if there is no such sample, or one of them is unknown.
 */
bool trace_mean(const struct trace *trace, uint64_t from, uint64_t to, size_t offset, double *mean);

#endif /* ACDC_TRACE_H */
