/* SPDX-License-Identifier: MIT */
/*
 * The hash table of P. E. McKenney, "Exploiting Deferred Destruction" (2004), sections 2.2.4 to
 * 2.2.11 and 8.1, under each mechanism compared there: a fixed number of chains, one element per
 * chain. Threads search for elements, or remove one and add one with the same key, as two
 * operations, back to back.
 *
 * All mechanisms share this: a bucket has a cache line, and so has an element; chains are doubly
 * linked and changed by <prudence/rculist.h>. A removed element is reused for the next addition.
 * Mechanisms with locks keep it in a list of the thread, which no other thread touches; RCU defers
 * and hazard pointers defer it to its cache, because readers may still use it.
 *
 * Each mechanism's loop exists twice: one is measured, and one has checks, whose faults end the
 * process with a message.
 */
#ifndef ADVISE_HASH_H
#define ADVISE_HASH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/rculist.h>

#include "crew.h"

#define HASH_LINE 64

enum element_state { ELEMENT_NEW, ELEMENT_IN, ELEMENT_REMOVED }; /* 0 to 2; only for checks */

struct element {
    struct prudence_list
        link;            /* in the bucket's chain, or, by `next`, in the thread's list of spares */
    uint64_t key, value; /* value is hash_value_of(key), written before the element is added */
    unsigned state;      /* enum element_state; atomic */
} __attribute__((aligned(HASH_LINE)));

/* The lock of bktcl is in the bucket's line; bkt and bktrw have a separate line for theirs. */
struct bucket {
    struct prudence_list chain;
    pthread_spinlock_t lock;
    unsigned readers,
        writer; /* for checks; atomic: number of readers inside, number of the writing thread + 1 */
} __attribute__((aligned(HASH_LINE)));

struct hash_mechanism {
    const char *name;
    /* Makes at least `operations` operations of this thread, counted in self->done. */
    void (*work)(struct crew_member *self, uint64_t operations);
    void (*work_checked)(struct crew_member *self, uint64_t operations);
    void (*prepare)(void); /* fills the table */
    void (*check_whole)(
        void); /* while no thread works, checks that each key exists once, and the chains */
    enum prudence_domain_kind domain; /* of hash_cache: the default domain, or one of kind hazard */
};

extern const struct hash_mechanism hash_mechanisms[];
const char *hash_mechanism_name(unsigned index); /* NULL after the last one */

struct hash_load {
    uint64_t threads; /* brlock has as many locks */
    uint64_t buckets; /* a power of two; also the number of elements */
    /*
     * A removal and addition begin if crew_random() is below this, which is f / (2 - f) of
     * CREW_RANDOM_END, so that a share f of the operations are removals and additions.
     */
    uint64_t pairs_below;
    /* Under RCU, number of operations after which a thread that has updated drives a grace period;
     * 0: the library decides. */
    uint64_t drive_each;
};

extern struct hash_load hash_load;
extern void (*hash_pause)(struct crew_member *self); /* called where checked operations yield */
extern struct prudence_cache *hash_cache;            /* for elements of mechanisms that defer */
extern struct prudence_domain *hash_domain;          /* the cache's */

/* Prepares the table for hash_load. Call once per process. */
void hash_prepare(const struct hash_mechanism *mechanism);
uint64_t hash_pairs_below(double updates);

/* Prints the fault and ends the process, because broken lists must not be followed further. */
void hash_fault(const char *what) __attribute__((noreturn, cold));

static inline uint64_t hash_value_of(uint64_t key)
{
    return ~key * UINT64_C(0x9e3779b97f4a7c15);
}

#endif /* ADVISE_HASH_H */
