/* SPDX-License-Identifier: MIT */
/* The hash table of values, with many more keys that come and go, so that it is resized; and a
 * fault that the checker must find. */
#include <prudence/hash_values.h>
#include <prudence/rcu.h>

#include "history.h"
#include "support/updates.h"

#define KEYS 12

static struct prudence_hash_values *table;

/* An object consists of its value only. */
static void *object_of(uint64_t value)
{
    return (void *)(uintptr_t)value;
}

static uint64_t get(uint64_t key)
{
    uint64_t value;

    prudence_read_lock();
    maybe_yield();
    value = (uintptr_t)prudence_hash_values_get(table, key);
    prudence_read_unlock();
    return value;
}

static void *put(uint64_t key, void *fresh)
{
    void *old = NULL;

    prudence_hash_values_put(table, key, fresh, &old);
    return old;
}

/* Replaces in two steps, so a lookup in between finds neither value. */
static void *broken_put(uint64_t key, void *fresh)
{
    void *old = hash_values_erase_found(table, key);

    maybe_yield();
    return old && !prudence_hash_values_add(table, key, fresh, NULL) ? old : put(key, fresh);
}

static void exchange(struct operation *operation, uint64_t key)
{
    uint64_t old = get(key), fresh = fresh_value();

    operation_begins(operation, EXCHANGE, key, old ? old : fresh_value());
    operation->second = fresh;
    operation_ends(operation, !prudence_hash_values_replace(
                                  table, key, object_of(operation->argument), object_of(fresh)));
}

static void operate_with(struct operation *operation, uint64_t *random,
                         void *(*put_one)(uint64_t key, void *fresh))
{
    uint64_t key = below(random, KEYS), choice = below(random, 12), value = fresh_value();
    void *there = NULL;

    if (choice < 2) {
        operation_begins(operation, PUT, key, value);
        operation_ends(operation, (uintptr_t)put_one(key, object_of(value)));
    } else if (choice < 4) {
        operation_begins(operation, UNIQUE, key, value);
        prudence_hash_values_add(table, key, object_of(value), &there);
        operation_ends(operation, (uintptr_t)there);
    } else if (choice < 6) {
        exchange(operation, key);
    } else if (choice < 8) {
        operation_begins(operation, TAKE, key, 0);
        maybe_yield();
        operation_ends(operation, (uintptr_t)hash_values_erase_found(table, key));
    } else {
        operation_begins(operation, LOOKUP, key, 0);
        operation_ends(operation, get(key));
    }
}

static void operate(struct operation *operation, uint64_t *random)
{
    operate_with(operation, random, put);
}

static void operate_broken(struct operation *operation, uint64_t *random)
{
    operate_with(operation, random, broken_put);
}

/* Makes the array grow and shrink. */
static void come_and_go(uint64_t *random)
{
    const uint64_t count = 100 + below(random, 1000);

    for (uint64_t key = KEYS; key < count; key++)
        prudence_hash_values_put(table, key, table, NULL);
    for (uint64_t key = KEYS; key < count; key++)
        prudence_hash_values_erase(table, key, NULL);
}

static void make(void)
{
    table = prudence_hash_values_create("history", NULL);
}

static void ignore(void *value, void *argument)
{
    (void)value, (void)argument;
}

static void unmake(void)
{
    prudence_hash_values_destroy(table, ignore, NULL);
}

const struct subject value_subjects[] = {
    {"values", make, operate, NULL, unmake},
    {"values-resized", make, operate, come_and_go, unmake},
    {"broken-values-put-in-two-steps", make, operate_broken, NULL, unmake},
    {.name = NULL},
};
