/* SPDX-License-Identifier: MIT */
/*
 * Histories for the checker (checker/main.go): the arguments and the result of each operation of
 * each thread, and the times when it began and ended.
 *
 * A subject is a structure, or a fault of one, and a function that makes one random operation of
 * one thread in a few lines. All subjects share the operations below, which are defined for each
 * key alone: a key has a list of values, mostly of one or none.
 */
#ifndef TESTS_LINEARIZABLE_HISTORY_H
#define TESTS_LINEARIZABLE_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "support/random.h"

/* Effect of each operation on a key's list, and its result (0: none, or no); the checker defines
 * the same. Values are not 0, and never used twice. */
enum operation_kind {
    LOOKUP,   /* returns the first */
    ADD,      /* puts the argument in front */
    UNIQUE,   /* puts the argument in front if the list is empty; otherwise returns the first */
    PUT,      /* replaces the first, which is the result, by the argument; or adds the argument */
    SWAP,     /* the same, but does nothing if the list is empty */
    EXCHANGE, /* replaces the argument by `second`: 1, if the argument was present */
    REMOVE,   /* removes the argument: 1, if it was present */
    TAKE,     /* removes the first */
    /* all values of the keys from `key` to the argument; for each key a LOOKUP at its own moment */
    SCAN,

    /* For an address, and prefixes of several lengths that match it; `second` is the number of
     * one, higher for longer ones. */
    ROUTE_LOOKUP, /* returns the value of the longest present prefix */
    ROUTE_ADD,    /* adds the prefix with this value, unless it is present: 1 */
    /* replaces the value of a present prefix by the argument; returns the old value */
    ROUTE_REPLACE,
    ROUTE_REMOVE, /* removes the prefix; returns its value */
};

#define FOUND_MOST 64

struct operation {
    enum operation_kind kind;
    unsigned thread;
    uint64_t key, argument, second, result;
    uint64_t began, ended; /* ns, by one clock for all CPUs */
    unsigned found_count;  /* keys found by a SCAN, in their order */
    struct {
        uint64_t key, value;
    } found[FOUND_MOST];
};

struct subject {
    const char *name; /* "broken-...": the checker must refuse it */
    void (*make)(void);
    void (*operate)(struct operation *operation, uint64_t *random);
    void (*disturb)(uint64_t *random); /* called repeatedly by a separate thread; may be NULL */
    void (*unmake)(void);
};

/* Each subject's file ends with its table, which history.c names. */
extern const struct subject hash_subjects[], id_subjects[], map_subjects[], route_subjects[];

uint64_t fresh_value(void);
void maybe_yield(void); /* lets other threads run here */

/* Every call of the structure is between these two. */
void operation_begins(struct operation *operation, enum operation_kind kind, uint64_t key,
                      uint64_t argument);
void operation_ends(struct operation *operation, uint64_t result);

#endif /* TESTS_LINEARIZABLE_HISTORY_H */
