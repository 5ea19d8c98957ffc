/* SPDX-License-Identifier: MIT */
/*
 * Histories for the checker (checker/main.go): what each operation of each thread was asked, what it returned, and when it
 * began and ended.
 *
 * A subject is a structure, or a fault of one, and a function that makes one random operation of one thread: few lines. All
 * subjects share the operations below, which are defined for each key alone: a key has a list of values, mostly of one or none.
 */
#ifndef TESTS_LINEARIZABLE_HISTORY_H
#define TESTS_LINEARIZABLE_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

/* What each does with the list of a key, and its result (0: none, or no): the checker has the same. Values are not 0, and never used twice. */
enum operation_kind {
    LOOKUP,   /* the first */
    ADD,      /* puts the argument in front */
    UNIQUE,   /* puts the argument in front if there is none; else the first */
    PUT,      /* the argument takes the place of the first, which is the result; or is put there */
    SWAP,     /* the same, but nothing is done if there is none */
    EXCHANGE, /* argument `second` takes the place of the argument: 1, if that is there */
    REMOVE,   /* the argument, if it is there: 1 */
    TAKE,     /* removes the first */
    SCAN, /* of keys from `key` to the argument: what was found. For each key a LOOKUP at a moment of its own */

    /* Of an address, and prefixes of several lengths that match it; `second` is the number of one, the longer the higher. */
    ROUTE_LOOKUP,  /* the value of the longest that is there */
    ROUTE_ADD,     /* with this value, unless it is there: 1 */
    ROUTE_REPLACE, /* its value by the argument, if it is there: the value before */
    ROUTE_REMOVE,  /* the value that it had */
};

#define FOUND_MOST 64

struct operation {
    enum operation_kind kind;
    unsigned thread;
    uint64_t key, argument, second, result;
    uint64_t began, ended; /* ns, of one clock for all CPUs */
    unsigned found_count;  /* by a SCAN, in the order in which it came */
    struct {
        uint64_t key, value;
    } found[FOUND_MOST];
};

struct subject {
    const char *name; /* "broken-...": the checker must refuse it */
    void (*make)(void);
    void (*operate)(struct operation *operation, uint64_t *random);
    void (*disturb)(uint64_t *random); /* by a thread of its own, again and again; may be NULL */
    void (*unmake)(void);
};

/* Every subject's file ends with its table, which history.c names. */
extern const struct subject hash_subjects[], id_subjects[], map_subjects[], route_subjects[],
    value_subjects[];

uint64_t below(uint64_t *random, uint64_t bound);
uint64_t fresh_value(void);
void maybe_yield(void); /* others come in between here */

/* The call of the structure stands between these two. */
void operation_begins(struct operation *operation, enum operation_kind kind, uint64_t key,
                      uint64_t argument);
void operation_ends(struct operation *operation, uint64_t result);

#endif /* TESTS_LINEARIZABLE_HISTORY_H */
