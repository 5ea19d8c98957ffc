/* SPDX-License-Identifier: MIT */
/* Tables of all kinds (tables/kinds.h) as subjects: what a table holds has a value of the
 * history. */
#ifndef TESTS_LINEARIZABLE_TABLES_H
#define TESTS_LINEARIZABLE_TABLES_H

#include "history.h"
#include "tables/kinds.h"

struct record {
    struct entry entry;
    uint64_t key, value; /* of the history */
};

/* The table of the subject. A key of the history is every `stride`th key of the kind. */
struct table_subject {
    const struct table_kind *kind;
    unsigned keys, stride;
    bool duplicates; /* also adds keys that are there */
    void *table;
};
extern struct table_subject subject;

typedef int table_put(void *table, unsigned key, struct entry *fresh, struct entry **found);

void subject_make(enum table_kind_number kind, unsigned keys, unsigned stride);
void subject_unmake(void);
struct record *record_make(uint64_t key);
void record_retire(struct record *record); /* NULL: nothing */

/* Makes one update or lookup, in a section. Returns what is to be retired, or NULL. */
struct record *subject_operate(struct operation *operation, uint64_t key, uint64_t choice,
                               table_put *put);

/* A put in two steps, so that a lookup in between finds neither object. */
table_put subject_broken_put;

#endif /* TESTS_LINEARIZABLE_TABLES_H */
