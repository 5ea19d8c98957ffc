/* SPDX-License-Identifier: MIT */
/* Subjects of prudence-structures: tables of objects with a key and a value. */
#ifndef BENCH_STRUCTURES_SUBJECT_H
#define BENCH_STRUCTURES_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "draws.h"
#include "random.h"
#include "timing.h"

/*
 * Keys have numbers. `size` objects are in the table: the stable keys [0, size / 2), and half of
 * the passing keys [size / 2, 3 size / 2). A lookup meant to hit takes a stable key, one meant to
 * miss a key from 2 size on. An update takes a passing key, and removes its object if there is one,
 * or adds one; so the number of objects stays about the same. The passing keys are divided among
 * the threads.
 */
struct work {
    uint64_t size;
    unsigned updates; /* of 100 operations */
    unsigned hits;    /* of 100 lookups */
    unsigned walk;    /* 0: lookups; otherwise walks of this many objects instead */
    unsigned thread, threads;
    const bool *stop; /* atomic */
    uint64_t random;
    struct draws stable, passing; /* choose among these keys */
    struct timing looked_up, updated;
    uint64_t lookups;                /* routes: number of lookups */
    unsigned char *gone;             /* routes: those that this thread has removed */
    uint64_t operations, found, sum; /* the result */
};

struct subject {
    const char *name, *origin;
    void (*start)(void);        /* called once in a process; NULL: nothing to do, as below */
    void (*thread_start)(void); /* called in each thread, and in the one that fills */
    void (*fill)(uint64_t size);
    void (*settle)(void); /* called after filling; waits for the table's background work */
    void (*run)(struct work *work);
    void (*thread_end)(void);
};

/* Operations between two checks of the stop. */
#define SLICE 64

/* Makes operations until the stop; at least a slice, even in a thread that gets its CPU too late.
 * `operation` is a constant, which the compiler inlines. */
static inline __attribute__((always_inline)) void
run_operations(struct work *work, void (*operation)(struct work *work, uint64_t random))
{
    do {
        for (unsigned i = 0; i < SLICE; i++)
            operation(work, next_random(&work->random));
        work->operations += SLICE;
    } while (!__atomic_load_n(work->stop, __ATOMIC_RELAXED));
}

static inline bool is_update(const struct work *work, uint64_t random)
{
    return (random >> 8) % 1024 * 100 < (uint64_t)work->updates * 1024;
}

static inline bool is_hit(const struct work *work, uint64_t random)
{
    return random % 128 * 100 < (uint64_t)work->hits * 128;
}

/* Reason why this run is invalid: a peer refused an operation. NULL if none did. Atomic. */
extern const char *subject_refusal;

static inline void subject_refuses(const char *why)
{
    __atomic_store_n(&subject_refusal, why, __ATOMIC_RELAXED);
}

/* Size of this run, for things that start() makes and that are not the table's memory. */
extern uint64_t subject_size;

/* Same as prudence_hash_mix. */
static inline uint64_t mix_of(uint64_t key)
{
    key ^= key >> 32;
    key *= UINT64_C(0xd6e8feb86659fd93);
    return key ^ key >> 29;
}

static inline uint64_t spread_of(uint64_t mixed)
{
    mixed *= UINT64_C(0x9e3779b97f4a7c15);
    return mixed ^ mixed >> 32;
}

/* Returns a number far from those of neighbouring keys, and different for different keys. */
static inline uint64_t hash_of(uint64_t key)
{
    return spread_of(mix_of(key));
}

#endif /* BENCH_STRUCTURES_SUBJECT_H */
