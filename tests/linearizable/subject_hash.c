/* SPDX-License-Identifier: MIT */
/* Hash tables of objects and of values, while another thread has them resized, and the one without
 * locks; and faults that the checker must find. */
#include <prudence/rcu.h>

#include "tables.h"

/* one or two in each of eight of 64 buckets; from 512 buckets on, each in its own */
#define KEYS 12

static uint64_t hash_of(uint64_t key, uint64_t hashes)
{
    uint64_t factor = prudence_hash_spread_(1), inverse = factor;

    for (unsigned i = 0; i < 6; i++)
        inverse *= 2 - factor * inverse;
    key %= hashes;
    return (key % 4 << 62 | key << 55) * inverse;
}

static uint64_t different(uint64_t key)
{
    return hash_of(key, KEYS);
}

static uint64_t equal(uint64_t key)
{
    return hash_of(key, 3);
}

static void operate_with(struct operation *operation, uint64_t *random, table_put *put)
{
    struct record *garbage;

    prudence_read_lock();
    garbage = subject_operate(operation, random_below(random, KEYS), random_below(random, 30), put);
    prudence_read_unlock();
    record_retire(garbage);
}

static void operate(struct operation *operation, uint64_t *random)
{
    operate_with(operation, random, subject.kind->put);
}

static void operate_broken(struct operation *operation, uint64_t *random)
{
    operate_with(operation, random, subject_broken_put);
}

static void resize(uint64_t *random)
{
    prudence_hash_resize(subject.table, UINT64_C(64) << 3 * random_below(random, 3));
}

/* Makes the array grow and shrink. */
static void come_and_go(uint64_t *random)
{
    static struct entry passing;
    const unsigned count = 100 + random_below(random, 1000);

    for (unsigned key = KEYS; key < count; key++)
        subject.kind->put(subject.table, key, &passing, NULL);
    for (unsigned key = KEYS; key < count; key++)
        subject.kind->erase(subject.table, key, NULL);
}

static void make_of(enum table_kind_number kind, uint64_t (*hash)(uint64_t), bool duplicates)
{
    table_hash = hash;
    subject_make(kind, KEYS, 1);
    subject.duplicates = duplicates;
}

static void make(void)
{
    make_of(TABLE_HASH, different, true);
}

/* Makes keys share their hash. Subjects with such keys have no ADD, because a lookup with
 * duplicates of them may miss (<prudence/hash.h>). */
static void make_equal(void)
{
    make_of(TABLE_HASH, equal, false);
}

static void make_lockfree(void)
{
    make_of(TABLE_LOCKFREE_HASH, equal, false);
}

static void make_values(void)
{
    make_of(TABLE_HASH_VALUES, different, false);
}

const struct subject hash_subjects[] = {
    {"hash", make, operate, NULL, subject_unmake},
    {"hash-resized", make, operate, resize, subject_unmake},
    {"hash-of-equal-hashes", make_equal, operate, resize, subject_unmake},
    {"hash-without-locks", make_lockfree, operate, NULL, subject_unmake},
    {"values", make_values, operate, NULL, subject_unmake},
    {"values-resized", make_values, operate, come_and_go, subject_unmake},
    {"broken-hash-replaces-in-two-steps", make, operate_broken, resize, subject_unmake},
    {"broken-values-put-in-two-steps", make_values, operate_broken, NULL, subject_unmake},
    {.name = NULL},
};
