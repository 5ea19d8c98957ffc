/* SPDX-License-Identifier: MIT */
/* What prudence-structures measures: tables of objects with a key and a value. */
#ifndef BENCH_STRUCTURES_SUBJECT_H
#define BENCH_STRUCTURES_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "draws.h"
#include "random.h"
#include "timing.h"

/*
 * Keys have numbers. `size` objects are in the table: the stable keys [0, size / 2), and half of the passing keys [size / 2,
 * 3 size / 2). A lookup that shall hit takes a stable key, one that shall miss a key from 2 size on. An update takes a
 * passing key: it removes the object if it is there, and adds one if it is not; so the number of objects stays about the
 * same. The passing keys are divided among the threads.
 */
struct work {
    uint64_t size;
    unsigned updates; /* of 100 operations */
    unsigned hits;    /* of 100 lookups */
    unsigned walk;    /* 0: lookups; otherwise walks of so many objects in their place */
    unsigned thread, threads;
    const bool *stop; /* atomic */
    uint64_t random;
    struct draws stable, passing; /* which of them */
    struct timing looked_up, updated;
    uint64_t lookups;                /* of routes: how many there were */
    unsigned char *gone;             /* of routes: those that this thread has removed */
    uint64_t operations, found, sum; /* the result */
};

struct subject {
    const char *name, *origin;
    void (*start)(void);        /* once a process */
    void (*thread_start)(void); /* in each thread, and in the one that fills */
    void (*fill)(uint64_t size);
    void (*settle)(void); /* after filling: what the table does in the background is done */
    void (*run)(struct work *work);
    void (*thread_end)(void);
};

/* For a subject that has nothing to do there. */
static inline void nothing(void)
{
}

/* Why this run says nothing: a peer refuses what it should do. NULL: it does not. Atomic. */
extern const char *subject_refusal;

static inline void subject_refuses(const char *why)
{
    __atomic_store_n(&subject_refusal, why, __ATOMIC_RELAXED);
}

/* Of this run, for what start() makes that is not the table's memory. */
extern uint64_t subject_size;

/* prudence_hash_mix. */
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

/* A number far from those of its neighbours; different ones of different keys. */
static inline uint64_t hash_of(uint64_t key)
{
    return spread_of(mix_of(key));
}

#endif /* BENCH_STRUCTURES_SUBJECT_H */
