/* SPDX-License-Identifier: MIT */
/*
 * Settings of a run of ACDC. Sizes are powers of two: a size class s holds the sizes from 2^s up to
 * 2^(s+1) - 1, and the largest class only 2^max_size, so that the bounds hold. Times count ticks of
 * a thread's logical clock, which advances once for each time quantum of bytes that the thread has
 * allocated.
 */
#ifndef ACDC_SETTINGS_H
#define ACDC_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOST_THREADS    4096
#define MOST_SIZE       30 /* 1 GiB */
#define MOST_LIVENESS   1000000
#define MOST_DURATION   1000000000
#define MOST_MULTIPLIER 1000000000
#define ANY_DRIFT       UINT64_MAX

enum memory_model { MODEL_PERSISTENT, MODEL_SHORT_TERM, MODEL_DEFERRED, MODEL_NONE };
enum reclaimer { RECLAIMER_PRUDENCE, RECLAIMER_LIBURCU };
enum collection { COLLECTION_LAZY, COLLECTION_EAGER };

struct settings {
    enum memory_model model;
    enum reclaimer reclaimer;   /* deferred: scheme that waits for the grace period */
    enum collection collection; /* used by short-term memory */
    unsigned deferred_share;    /* deferred: percent of the frees that wait for a grace period */
    unsigned threads;
    uint64_t duration;     /* ticks of each thread */
    uint64_t time_quantum; /* bytes */
    unsigned min_size, max_size;
    uint64_t min_liveness, max_liveness, deallocation_delay;
    uint64_t max_drift; /* ticks that a thread may be ahead of the slowest, or ANY_DRIFT */
    uint64_t multiplier;
    uint64_t objects;    /* number in each round; 0: use the formula */
    bool original;       /* rules of the public tool (draw.h), not of the thesis */
    unsigned tree_share; /* percent of the groups; the others are lists */
    bool access, false_sharing;
    unsigned write_ratio, write_iterations;
    bool shared;
    unsigned share_ratio, receiver_ratio;
    uint64_t seed;
    uint64_t think;   /* logarithms to compute after each allocation */
    uint64_t timed;   /* one operation in this many is timed; 0: none */
    uint64_t samples; /* most samples of memory; 0: none */
    bool pinned;
    const char *label; /* name of the run in the results; NULL: none */
};

void settings_defaults(struct settings *settings);

/* Returns an object's whole life in ticks: it is accessed during its liveness, and freed after
 * the delay. */
static inline uint64_t longest_lifetime(const struct settings *settings)
{
    return settings->max_liveness + settings->deallocation_delay;
}

/* Returns how many threads get a reference to each shared object: its own, and a share of the
 * others. The public tool takes the share of all threads. */
static inline unsigned receivers(const struct settings *settings)
{
    if (settings->original) {
        unsigned share = settings->threads * settings->receiver_ratio / 100;

        return share ? share : 1;
    }
    return 1 + (settings->threads - 1) * settings->receiver_ratio / 100;
}

/* Return the names of these three enums; NULL after the last. */
const char *model_text(unsigned model);
const char *reclaimer_text(unsigned reclaimer);
const char *collection_text(unsigned collection);

/* Checks whether these values, each of them valid, fit together. Returns false if not; `why`
 * names the conflict. */
bool settings_check(const struct settings *settings, char *why, size_t size);

#endif /* ACDC_SETTINGS_H */
