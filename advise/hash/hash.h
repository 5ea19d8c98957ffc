/* SPDX-License-Identifier: MIT */
/*
 * The hash table of P. E. McKenney, "Exploiting Deferred Destruction" (2004), sections 2.2.4 to 2.2.11 and 8.1, under each
 * mechanism that is compared there: a fixed number of chains, one element to a chain. Threads search for elements, or
 * remove one and add one with the same key, as two operations, back to back.
 *
 * What is the same for all mechanisms: a bucket has a cache line, and so has an element; chains are doubly linked and changed by
 * <prudence/rculist.h>. An element that was removed is used for the next one that is added. Locks keep it in a list of the
 * thread's own meanwhile, which no other thread touches; RCU defers it to its cache, because readers may still be at it.
 *
 * Each mechanism's loop exists twice: as it is measured, and with checks, whose faults end the process with a message.
 */
#ifndef ADVISE_HASH_H
#define ADVISE_HASH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <prudence/prudence.h>
#include <prudence/rculist.h>

#include "crew.h"

#define HASH_LINE 64

enum element_state {
    ELEMENT_NEW,
    ELEMENT_IN,
    ELEMENT_REMOVED
}; /* 0 to 2; only checks look at it */

struct element {
    struct prudence_list
        link; /* its bucket's chain; or, by `next`, its thread's list of spare elements */
    uint64_t key, value; /* value: hash_value_of(key), written before the element is added */
    unsigned state;      /* enum element_state; atomic */
} __attribute__((aligned(HASH_LINE)));

/* The lock of bktcl stands in its bucket's line; that of bkt and bktrw in a line of its own. */
struct bucket {
    struct prudence_list chain;
    pthread_spinlock_t lock;
    unsigned readers,
        writer; /* only of checks; atomic. Inside now: how many; the number of the thread + 1 */
} __attribute__((aligned(HASH_LINE)));

struct hash_mechanism {
    const char *name;
    /* At least so many operations of this thread, counted in self->done. */
    void (*work)(struct crew_member *self, uint64_t operations);
    void (*work_checked)(struct crew_member *self, uint64_t operations);
    void (*prepare)(void); /* fills the table */
    void (*check_whole)(
        void); /* while no thread works: each key is there once, and the chains are whole */
};

extern const struct hash_mechanism hash_mechanisms[];
const char *hash_mechanism_name(unsigned index); /* NULL behind the last one */

struct hash_load {
    uint64_t threads; /* that brlock has locks for */
    uint64_t buckets; /* a power of two; so many elements as well */
    /*
     * Pairs of a removal and an addition begin where crew_random() is below this: at f / (2 - f) of CREW_RANDOM_END, so that a
     * share f of the operations are removals and additions.
     */
    uint64_t pairs_below;
    /* Under RCU: operations of a thread after which it drives a grace period, if it has updated since; 0: as the library
     * decides. */
    uint64_t drive_each;
};

extern struct hash_load hash_load;
extern struct prudence_cache *hash_cache; /* of the elements, where they are deferred */

/* Prepares the table for hash_load; once in a process. */
void hash_prepare(const struct hash_mechanism *mechanism);
uint64_t hash_pairs_below(double updates);

/* Prints what is wrong and ends the process: lists that are broken are not followed further. */
void hash_fault(const char *what) __attribute__((noreturn, cold));

static inline uint64_t hash_value_of(uint64_t key)
{
    return ~key * UINT64_C(0x9e3779b97f4a7c15);
}

#endif /* ADVISE_HASH_H */
