/* SPDX-License-Identifier: MIT */
/*
 * The ordered map, while another thread makes its nodes grow and shrink; and faults that the
 * checker must find.
 *
 * Walks, and searches for the nearest key, are recorded as scans: of the keys found, and of those
 * skipped.
 */
#include <prudence/map.h>
#include <prudence/rcu.h>

#include "tables.h"

#define KEYS    48 /* more than a walk fetches at once */
#define STRIDE  23 /* other objects are between the keys */
#define PASSING 40 /* objects of the disturbing thread, between the keys */

static struct record *record_at(struct prudence_map_node *node)
{
    return node ? prudence_map_entry(node, struct record, entry.place.node) : NULL;
}

/* ---------------------------------------------------------------------------------------- scans */

static bool is_recorded(const struct record *object)
{
    return object->key < KEYS;
}

static void found(struct operation *operation, const struct record *object)
{
    operation->found[operation->found_count].key = object->key;
    operation->found[operation->found_count++].value = object->value;
}

static void walk(struct operation *operation, uint64_t from)
{
    struct prudence_map_walk walk;
    struct record *object;

    operation_begins(operation, SCAN, from, KEYS - 1);
    for (object = record_at(table_first_from(&walk, subject.table, (unsigned)from * STRIDE));
         object; object = record_at(prudence_map_next(&walk))) {
        if (is_recorded(object))
            found(operation, object);
        maybe_yield();
    }
    operation_ends(operation, 0);
}

/* Continues by the number of objects so far, so it skips one if another one below is removed. */
static void broken_walk(struct operation *operation, uint64_t from)
{
    struct prudence_map_walk walk;
    struct record *object;
    bool more = true;

    operation_begins(operation, SCAN, from, KEYS - 1);
    while (more) {
        unsigned passed = 0, page = operation->found_count + 8;

        more = false;
        for (object = record_at(table_first_from(&walk, subject.table, (unsigned)from * STRIDE));
             object && !more; object = record_at(prudence_map_next(&walk))) {
            if (is_recorded(object) && passed++ >= operation->found_count)
                found(operation, object);
            more = operation->found_count == page;
        }
        maybe_yield();
    }
    operation_ends(operation, 0);
}

/* Searches for the nearest recorded object above; repeats the search past other objects. */
static void search_above(struct operation *operation, uint64_t key)
{
    struct record *object;

    operation_begins(operation, SCAN, key, KEYS - 1);
    object = record_at(table_ceiling(subject.table, (unsigned)key * STRIDE));
    while (object && !is_recorded(object))
        object = record_at(prudence_map_after(subject.table, &object->entry.place.node));
    operation_ends(operation, 0);
    if (!object)
        return;
    operation->argument = object->key;
    found(operation, object);
}

static void search_below(struct operation *operation, uint64_t key)
{
    struct record *object;

    operation_begins(operation, SCAN, 0, key);
    object = record_at(table_floor(subject.table, (unsigned)key * STRIDE));
    while (object && !is_recorded(object))
        object = record_at(prudence_map_before(subject.table, &object->entry.place.node));
    operation_ends(operation, 0);
    if (!object)
        return;
    operation->key = object->key;
    found(operation, object);
}

/* ------------------------------------------------------------------------------------ histories */

/* Returns one of six keys for half of all operations. */
static uint64_t some_key(uint64_t *random)
{
    uint64_t key = random_below(random, KEYS);

    return random_below(random, 2) ? key : key / 8 * 8;
}

static void operate_with(struct operation *operation, uint64_t *random, table_put *put,
                         void (*walk_from)(struct operation *operation, uint64_t from))
{
    uint64_t key = some_key(random), choice = random_below(random, 40);
    struct record *garbage = NULL;

    prudence_read_lock();
    if (choice < 36)
        garbage = subject_operate(operation, key, choice, put);
    else if (choice < 38)
        walk_from(operation, key);
    else
        (choice == 38 ? search_above : search_below)(operation, key);
    prudence_read_unlock();
    record_retire(garbage);
}

static void operate(struct operation *operation, uint64_t *random)
{
    operate_with(operation, random, subject.kind->put, walk);
}

static void operate_with_broken_put(struct operation *operation, uint64_t *random)
{
    operate_with(operation, random, subject_broken_put, walk);
}

static void operate_with_broken_walk(struct operation *operation, uint64_t *random)
{
    operate_with(operation, random, subject.kind->put, broken_walk);
}

/* Adds and removes objects between the keys, so that larger and smaller nodes replace each
 * other. */
static void disturb(uint64_t *random)
{
    struct record *passing[PASSING];
    const unsigned first = random_below(random, KEYS);

    for (unsigned i = 0; i < PASSING; i++) {
        passing[i] = record_make(KEYS);
        subject.kind->add(subject.table, (first + i) % KEYS * STRIDE + 1, &passing[i]->entry, NULL);
    }
    for (unsigned i = 0; i < PASSING; i++) {
        subject.kind->remove(subject.table, &passing[i]->entry);
        record_retire(passing[i]);
    }
}

static void make(void)
{
    subject_make(TABLE_MAP, KEYS, STRIDE);
}

static void make_of_strings(void)
{
    subject_make(TABLE_MAP_BYTES, KEYS, STRIDE);
}

const struct subject map_subjects[] = {
    {"map", make, operate, disturb, subject_unmake},
    {"map-of-strings", make_of_strings, operate, disturb, subject_unmake},
    {"broken-map-replaces-in-two-steps", make, operate_with_broken_put, disturb, subject_unmake},
    {"broken-map-walks-by-numbers", make, operate_with_broken_walk, disturb, subject_unmake},
    {.name = NULL},
};
