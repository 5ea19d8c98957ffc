/* SPDX-License-Identifier: MIT */
/*
 * The threads' clocks. Each thread advances its own; none may be further ahead of the slowest than
 * the drift allows. A thread that is done no longer counts.
 */
#ifndef ACDC_PACE_H
#define ACDC_PACE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define NO_TIME UINT64_MAX /* all threads are done */

struct clock_of_thread {
    _Alignas(64) uint64_t time;
};

struct pace {
    struct clock_of_thread *clock; /* each written by one thread */
    unsigned threads;
    uint64_t max_drift;
    uint64_t slowest; /* the smallest time; written under the lock */
    bool stopped;     /* no thread waits any more */
    pthread_mutex_t lock;
    pthread_cond_t advanced;
};

/* Initializes it; `clock` has one entry for each thread, all 0. */
void pace_start(struct pace *pace, struct clock_of_thread *clock, unsigned threads,
                uint64_t max_drift);
void pace_end(struct pace *pace);

/* Advances the thread's clock. Returns true if the slowest thread's time has advanced with it. */
bool pace_advance(struct pace *pace, unsigned thread);

/* Waits until the thread is within the drift, or the run is stopped. */
void pace_wait(struct pace *pace, unsigned thread);

/* Ends the thread's part. */
void pace_finish(struct pace *pace, unsigned thread);

void pace_stop(struct pace *pace);

static inline uint64_t pace_slowest(const struct pace *pace)
{
    return __atomic_load_n(&pace->slowest, __ATOMIC_ACQUIRE);
}

static inline bool pace_stopped(const struct pace *pace)
{
    return __atomic_load_n(&pace->stopped, __ATOMIC_RELAXED);
}

#endif /* ACDC_PACE_H */
