/* SPDX-License-Identifier: MIT */
/*
 * Concurrency Kit's set of objects, with CK_HS_MODE_OBJECT and CK_HS_MODE_DELETE, which the manual
 * requires for pointers and for removals; and a little of the maintenance (ck_hs_gc) once in 128
 * removals.
 */
#include <ck_hs.h>

#include "ck_family.h"

#define GC_EVERY  128
#define GC_CYCLES 128

static ck_hs_t table;
static unsigned long removed; /* under `writer` */

/* Hashes the object, or the key to look up: both begin with the key. */
static unsigned long hash_key(const void *key, unsigned long seed)
{
    (void)seed;
    return key_hash(key);
}

static bool same_key(const void *a, const void *b)
{
    return key_same(a, b);
}

static void start(void)
{
    ck_epoch_init(&epoch);
    if (!ck_hs_init(&table, CK_HS_MODE_SPMC | CK_HS_MODE_OBJECT | CK_HS_MODE_DELETE, hash_key,
                    same_key, &allocator, 64, 1))
        abort();
}

static inline bool find(uint64_t number, uint64_t *value)
{
    const bench_key key = key_of(number);
    const struct object *object = ck_hs_get(&table, CK_HS_HASH(&table, hash_key, &key), &key);

    if (object)
        *value = object->value;
    return object;
}

static inline bool flip(uint64_t number)
{
    const bench_key key = key_of(number);
    const unsigned long hash = CK_HS_HASH(&table, hash_key, &key);
    struct object *old;

    pthread_mutex_lock(&writer);
    old = ck_hs_remove(&table, hash, &key);
    if (!old && !ck_hs_put(&table, hash, object_make(&key, number)))
        abort();
    if (old && ++removed % GC_EVERY == 0 && !ck_hs_gc(&table, GC_CYCLES, key_hash(&old->key)))
        abort();
    pthread_mutex_unlock(&writer);
    if (old)
        object_retire(old);
    return !old;
}

#include "loop.h"

const struct subject SUBJECT(ck_hs) = {
    "ck_hs",
    "Concurrency Kit's set, one writer at a time, its objects from malloc and to epochs",
    .start = start,
    .thread_start = thread_start,
    .fill = fill,
    .run = run,
    .thread_end = thread_end};
