/* SPDX-License-Identifier: MIT */
/* The table of ids: an identifier is a key. An insertion may get any identifier that was free. */
#include <prudence/id_table.h>
#include <prudence/rcu.h>

#include "history.h"
#include "support/updates.h"

#define IDS 70 /* the array grows at 64 */

static struct prudence_id_table *table;

/* An object consists of its value only. */
static void *object_of(uint64_t value)
{
    return (void *)(uintptr_t)value;
}

static void insert(struct operation *operation)
{
    uint64_t value = fresh_value();
    uint32_t id = 0;

    operation_begins(operation, UNIQUE, 0, value);
    maybe_yield();
    prudence_id_table_add(table, object_of(value), &id);
    operation_ends(operation, 0);
    operation->key = id;
}

static void operate_with(struct operation *operation, uint64_t *random,
                         const struct prudence_id_table *lookups)
{
    uint32_t id = random_below(random, IDS);
    uint64_t choice = random_below(random, 10), value;

    if (choice < 3 && prudence_id_table_count(table) < IDS) {
        insert(operation);
    } else if (choice < 5) {
        operation_begins(operation, TAKE, id, 0);
        maybe_yield();
        operation_ends(operation, (uintptr_t)ids_erase_found(table, id));
    } else if (choice < 7) {
        value = fresh_value();
        operation_begins(operation, SWAP, id, value);
        maybe_yield();
        operation_ends(operation, (uintptr_t)ids_replace_found(table, id, object_of(value)));
    } else {
        prudence_read_lock();
        operation_begins(operation, LOOKUP, id, 0);
        maybe_yield();
        operation_ends(operation, (uintptr_t)prudence_id_table_lookup(lookups, id));
        prudence_read_unlock();
    }
}

static void operate(struct operation *operation, uint64_t *random)
{
    operate_with(operation, random, table);
}

/* Lets readers keep the table's first array. */
static struct prudence_id_table first;

static void operate_stale(struct operation *operation, uint64_t *random)
{
    operate_with(operation, random, &first);
}

static void make(void)
{
    table = prudence_id_table_create("history", NULL);
}

/* Keeps the first array by a section, so the fault is the user's. */
static void make_stale(void)
{
    make();
    first = *table;
    prudence_read_lock();
}

static void unmake(void)
{
    struct prudence_id_table_walk walk;
    void *object;

    prudence_id_table_for_each(&walk, table, object) prudence_id_table_erase(table, walk.id, NULL);
    prudence_id_table_destroy(table, NULL, NULL);
}

static void unmake_stale(void)
{
    prudence_read_unlock();
    unmake();
}

const struct subject id_subjects[] = {
    {"ids", make, operate, NULL, unmake},
    {"broken-ids-looked-up-in-an-old-array", make_stale, operate_stale, NULL, unmake_stale},
    {.name = NULL},
};
