/* SPDX-License-Identifier: MIT */
/*
 * All kinds of tables behind one set of operations, for tests that say once what is true of every
 * table. A key is a number from 0 on. Each kind makes its own key of it: a hash, a number, a string
 * of bytes, an identifier, a prefix. A table holds entries: the object itself, or its address as
 * the value.
 */
#ifndef TESTS_TABLES_KINDS_H
#define TESTS_TABLES_KINDS_H

#include <prudence/hash.h>
#include <prudence/map.h>

#include "support/slab_test.h"

struct entry {
    struct prudence_hash_node node;
    struct prudence_map_bytes place;
    unsigned key;
    bool in; /* for tests: the table has the entry */
};

struct table_stats {
    uint64_t objects, bytes_live, bytes_latent;
};

enum table_flags {
    TABLE_OBJECTS = 1 << 0, /* holds the entries themselves, so an entry has one place at most */
    TABLE_SORTED = 1 << 1,  /* walks and disposes in the order of keys */
    TABLE_DOMAIN = 1 << 2,  /* belongs to a domain, and destroying waits for its readers */
    TABLE_DEFERS = 1 << 3,  /* updates defer memory of the table */
    TABLE_CHOOSES = 1 << 4, /* an addition gets its key from the table, the lowest that is free */
    TABLE_KEEPS = 1 << 5,   /* goes with what is in it; no function takes the objects */
    TABLE_ROOM = 1 << 6,    /* removals need no memory */
    TABLE_ROOM_TO_CHANGE = 1 << 7, /* nor does an update of a key that is there */
    TABLE_PREPARED = 1 << 8,       /* was changed since it was made, and is not small */
};

typedef void table_dispose(struct entry *entry, void *argument);
typedef void table_visit(unsigned key, struct entry *entry, void *argument);

/* Results are those of the public functions. An operation that a kind does not have is NULL. */
struct table_kind {
    const char *name;
    unsigned flags;
    const unsigned *keys; /* how many there are; 0 before the first table_make */
    void *(*create)(const char *name, const void *attr);
    const void *attr;
    size_t attr_size, domain_at; /* offset of attr->domain */
    int (*destroy)(void *table, table_dispose *dispose, void *argument);
    uint64_t (*count)(const void *table);
    int (*stats)(void *table, struct table_stats *stats); /* NULL is passed on */
    int (*add)(void *table, unsigned key, struct entry *entry, struct entry **found);
    int (*add_duplicate)(void *table, unsigned key, struct entry *entry);
    int (*put)(void *table, unsigned key, struct entry *entry, struct entry **found);
    /* `old`, and no other, by `fresh` */
    int (*replace)(void *table, unsigned key, struct entry *old, struct entry *fresh);
    /* whatever is there; nothing is added */
    int (*swap)(void *table, unsigned key, struct entry *fresh, struct entry **found);
    int (*remove)(void *table, struct entry *entry);
    int (*erase)(void *table, unsigned key, struct entry **found);
    struct entry *(*get)(const void *table, unsigned key);
    struct entry *(*next_duplicate)(const struct entry *entry);
    struct entry *(*at)(struct prudence_map_node *node); /* of maps; NULL: NULL */
    void (*walk)(void *table, table_visit *visit, void *argument);
    void (*check)(void *table); /* checks every invariant, if no update is running */
};

enum table_kind_number {
    TABLE_HASH,
    TABLE_LOCKFREE_HASH,
    TABLE_MAP,
    TABLE_MAP_BYTES,
    TABLE_HASH_VALUES,
    TABLE_HASH_VALUES_BYTES,
    TABLE_MAP_VALUES,
    TABLE_MAP_VALUES_BYTES,
    TABLE_IDS,
    TABLE_ROUTES_IPV4,
    TABLE_ROUTES_IPV6,
    TABLE_ROUTES_AREAS,
    TABLE_KINDS
};

extern const struct table_kind table_kinds[TABLE_KINDS];

/* What maps find at a key or next to it, also those of values; see `at`. */
struct prudence_map_node *table_ceiling(const void *map, unsigned key);
struct prudence_map_node *table_floor(const void *map, unsigned key);
struct prudence_map_node *table_first_from(struct prudence_map_walk *walk, const void *map,
                                           unsigned key);

/* The hash of the number of a key in tables of hashes. */
extern uint64_t (*table_hash)(uint64_t number);

/* If not NULL, called before a table of hashes compares keys. */
extern void (*table_compares)(void);

/* Several threads update a table, so it cannot be foretold which identifier a key gets. */
extern bool tables_are_shared;

/* Makes a table; domain NULL: the default domain. */
void *table_make(const struct table_kind *kind, struct prudence_domain *domain);

/* --------------------------------------------------------------------------- tests of all kinds */

/* A test of every kind of table that has all flags of `wanted` and none of `unwanted`. */
struct table_case {
    const char *name;
    void (*run)(void);
    unsigned wanted, unwanted;
};

extern const struct table_kind *tested; /* whose test runs */

/* Runs each case with each of its kinds, as "case: kind". Returns the number that failed. */
int table_cases_run(const struct table_case *cases, unsigned count);

#endif /* TESTS_TABLES_KINDS_H */
