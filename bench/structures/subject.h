/* SPDX-License-Identifier: MIT */
/* What prudence-structures measures: tables of objects with a key and a value. */
#ifndef BENCH_STRUCTURES_SUBJECT_H
#define BENCH_STRUCTURES_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Keys. `size` objects are in the table: the stable keys [0, size / 2), and half of the passing keys [size / 2, 3 size / 2).
 * A lookup that shall hit takes a stable key, one that shall miss a key from 2 size on. An update takes a passing key: it
 * removes the object if it is there, and adds one if it is not; so the number of objects stays about the same. The
 * passing keys are divided among the threads.
 */
struct work {
    uint64_t size;
    unsigned updates; /* of 100 operations */
    unsigned hits;    /* of 100 lookups */
    unsigned walk;    /* 0: lookups; otherwise walks of so many objects in their place */
    unsigned thread, threads;
    const bool *stop; /* atomic */
    uint64_t random;
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

/* Of this run, for what start() makes that is not the table's memory. */
extern uint64_t subject_size;

extern const struct subject subject_prudence, subject_rculfhash, subject_ck_ht;
extern const struct subject subject_lockfree, subject_rename, subject_rename_twice,
    subject_rename_moved;
extern const struct subject subject_ids_word, subject_ids_ordered, subject_ids_indirect;
extern const struct subject subject_routes, subject_rte_lpm, subject_rte_fib, subject_binary_trie;
extern const struct subject subject_routes6, subject_rte_lpm6, subject_rte_fib6;
extern const struct subject subject_map, subject_std_map, subject_skip_list;

/* Of maps: keys far from each other. Of rculfhash and ck_ht: what prudence_hash makes of prudence_hash_mix(key), with the highest bits mixed into the lowest,
 * which those tables take. */
static inline uint64_t hash_of(uint64_t key)
{
    key ^= key >> 32;
    key *= UINT64_C(0xd6e8feb86659fd93);
    key ^= key >> 29;
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 32;
}

static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* From 0 to bound - 1; bound < 2^32. */
static inline uint64_t below(uint64_t random, uint64_t bound)
{
    return (random >> 32) * bound >> 32;
}

#endif /* BENCH_STRUCTURES_SUBJECT_H */
