/* SPDX-License-Identifier: MIT */
/* See tables.h. */
#include "tables.h"

#include <prudence/prudence.h>

struct table_subject subject;
static struct prudence_cache *records;

static struct record *record_of(struct entry *entry)
{
    return (struct record *)entry; /* its first member */
}

static uint64_t value_of(struct entry *entry)
{
    return entry ? record_of(entry)->value : 0;
}

struct record *record_make(uint64_t key)
{
    struct record *record = prudence_cache_alloc(records);

    record->key = key;
    record->value = fresh_value();
    return record;
}

void record_retire(struct record *record)
{
    if (record)
        prudence_cache_free_deferred(records, record);
}

void subject_make(enum table_kind_number kind, unsigned keys, unsigned stride)
{
    subject.kind = &table_kinds[kind];
    subject.keys = keys;
    subject.stride = stride;
    subject.table = table_make(subject.kind, NULL);
    table_compares = maybe_yield;
    records = prudence_cache_create("history", sizeof(struct record), NULL);
}

static void dispose(struct entry *entry, void *unused)
{
    prudence_cache_free(records, entry);
}

void subject_unmake(void)
{
    subject.kind->destroy(subject.table, dispose, NULL);
}

int subject_broken_put(void *table, unsigned key, struct entry *fresh, struct entry **found)
{
    if (!subject.kind->erase(table, key, found)) {
        maybe_yield();
        if (!subject.kind->add(table, key, fresh, NULL))
            return 0;
        record_retire(record_of(*found));
    }
    return subject.kind->put(table, key, fresh, found);
}

/* Replaces or removes what this thread has found; another thread may have come first. */
static struct record *update_found(struct operation *operation, unsigned key, struct entry *found,
                                   struct record *fresh)
{
    const struct table_kind *const kind = subject.kind;
    int error;

    operation_begins(operation, fresh ? EXCHANGE : REMOVE, operation->key, value_of(found));
    operation->second = fresh ? fresh->value : 0;
    error = fresh ? kind->replace(subject.table, key, found, &fresh->entry)
                  : kind->remove(subject.table, found);
    operation_ends(operation, !error);
    return error ? fresh : record_of(found);
}

static struct record *take(struct operation *operation, unsigned key)
{
    struct entry *old = NULL;

    operation_begins(operation, TAKE, operation->key, 0);
    maybe_yield();
    subject.kind->erase(subject.table, key, &old);
    operation_ends(operation, value_of(old));
    return record_of(old);
}

static struct record *add(struct operation *operation, unsigned key, uint64_t choice,
                          table_put *put)
{
    struct record *fresh = record_make(operation->key);
    struct entry *old = NULL;

    if (choice < 4) {
        operation_begins(operation, UNIQUE, operation->key, fresh->value);
        subject.kind->add(subject.table, key, &fresh->entry, &old);
        operation_ends(operation, value_of(old));
        return old ? fresh : NULL;
    }
    if (choice < 9) {
        operation_begins(operation, PUT, operation->key, fresh->value);
        put(subject.table, key, &fresh->entry, &old);
        operation_ends(operation, value_of(old));
        return record_of(old);
    }
    operation_begins(operation, ADD, operation->key, fresh->value);
    subject.kind->add_duplicate(subject.table, key, &fresh->entry);
    operation_ends(operation, 0);
    return NULL;
}

struct record *subject_operate(struct operation *operation, uint64_t key, uint64_t choice,
                               table_put *put)
{
    const unsigned at = (unsigned)key * subject.stride;
    struct entry *found = choice < 19 ? subject.kind->get(subject.table, at) : NULL;

    operation->key = key;
    if (found && choice >= 9 && (choice >= 16 || subject.kind->remove))
        return update_found(operation, at, found, choice < 16 ? NULL : record_make(key));
    if (choice < 9 || (choice == 19 && subject.duplicates))
        return add(operation, at, choice, put);
    if (choice < 22 && !subject.kind->next_duplicate) /* otherwise no call takes by the key */
        return take(operation, at);
    operation_begins(operation, LOOKUP, key, 0);
    operation_ends(operation, value_of(subject.kind->get(subject.table, at)));
    return NULL;
}
