/* SPDX-License-Identifier: MIT */
/* The usual table of a program without RCU: chains under one reader-writer lock of POSIX,
 * objects from malloc. The table doubles its buckets when it has more objects than buckets. */
#include <pthread.h>
#include <stdlib.h>

#include "keys.h"

struct object {
    struct object *next;
    uint64_t hash;
    bench_key key;
    uint64_t value;
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct object **buckets;
static uint64_t bucket_count, objects; /* a power of two; number of objects in the table */

static void make_buckets(uint64_t count)
{
    bucket_count = count;
    buckets = calloc(count, sizeof *buckets);
    if (!buckets)
        abort();
}

static void start(void)
{
    make_buckets(64);
}

static inline void read_begin(void)
{
    pthread_rwlock_rdlock(&lock);
}

static inline void read_end(void)
{
    pthread_rwlock_unlock(&lock);
}

/* Returns where the object with this key is linked, or where it would be, which holds NULL. */
static inline struct object **place_in(uint64_t hash, const bench_key *key)
{
    struct object **place = &buckets[hash & (bucket_count - 1)];

    while (*place && ((*place)->hash != hash || !key_same(&(*place)->key, key)))
        place = &(*place)->next;
    return place;
}

static inline bool find(uint64_t number, uint64_t *value)
{
    const bench_key key = key_of(number);
    const struct object *object = *place_in(key_hash(&key), &key);

    if (object)
        *value = object->value;
    return object;
}

static void grow(void)
{
    struct object **old = buckets;
    const uint64_t count = bucket_count;

    make_buckets(2 * count);
    for (uint64_t i = 0; i < count; i++)
        for (struct object *object = old[i], *next; object; object = next) {
            struct object **bucket = &buckets[object->hash & (bucket_count - 1)];

            next = object->next;
            object->next = *bucket;
            *bucket = object;
        }
    free(old);
}

static inline void add(struct object **place, uint64_t hash, const bench_key *key, uint64_t value)
{
    struct object *object = malloc(sizeof *object);

    if (!object)
        abort();
    *object = (struct object){.hash = hash, .key = *key, .value = value};
    *place = object;
    if (++objects > bucket_count)
        grow();
}

static inline bool flip(uint64_t number)
{
    const bench_key key = key_of(number);
    const uint64_t hash = key_hash(&key);
    struct object *old, **place;

    pthread_rwlock_wrlock(&lock);
    place = place_in(hash, &key);
    old = *place;
    if (old) {
        *place = old->next;
        objects--;
    } else {
        add(place, hash, &key, number);
    }
    pthread_rwlock_unlock(&lock);
    free(old);
    return !old;
}

#include "loop.h"

const struct subject SUBJECT(rwlock) = {"rwlock",
                                        "chains under one pthread_rwlock_t, objects from malloc",
                                        .start = start, .fill = fill, .run = run};
