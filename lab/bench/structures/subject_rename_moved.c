/* SPDX-License-Identifier: MIT */
/*
 * Updates that rename in place, as in "Exploiting Deferred Destruction", section 6.2: under one
 * lock for all, the object is taken out of its chain, its key changes, and it is put into the other
 * chain. A reader checks that the object was not moved during the comparison (a count in each), and
 * that it is in the searched chain; a search that finds nothing is repeated if anything was renamed
 * during it (a sequence for all). The number of buckets is fixed, and equals the number of objects.
 */
#include <pthread.h>
#include <stdlib.h>

#include <prudence/hash.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "subject.h"

struct name {
    struct name *next; /* this and the next three: atomic */
    uint64_t key;
    uint64_t bucket;
    uint64_t moves;
    uint64_t value;
};

static struct name **buckets;
static uint64_t bucket_count, renames;
static pthread_spinlock_t lock;

#define GET(word)        __atomic_load_n(&(word), __ATOMIC_ACQUIRE)
#define SET(word, value) __atomic_store_n(&(word), value, __ATOMIC_RELEASE)

static inline uint64_t home_of(uint64_t key)
{
    return prudence_hash_spread_(prudence_hash_mix(key)) & (bucket_count - 1);
}

/* Searches in one pass. *strayed: an object led to another chain. */
static inline struct name *pass(uint64_t key, uint64_t bucket, bool *strayed)
{
    for (struct name *name = GET(buckets[bucket]); name; name = GET(name->next)) {
        uint64_t moves = GET(name->moves);

        if (GET(name->key) == key) {
            __atomic_thread_fence(__ATOMIC_ACQUIRE);
            if (GET(name->moves) == moves)
                return name;
        }
        if (GET(name->bucket) != bucket) {
            *strayed = true;
            return NULL;
        }
    }
    return NULL;
}

static inline struct name *name_of(uint64_t key)
{
    uint64_t bucket = home_of(key);

    for (;;) {
        uint64_t sequence = GET(renames);
        bool strayed = false;
        struct name *name = pass(key, bucket, &strayed);

        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (name || (!strayed && !(sequence & 1) && GET(renames) == sequence))
            return name;
    }
}

static void link_in(struct name *name, uint64_t key)
{
    SET(name->key, key);
    SET(name->bucket, home_of(key));
    SET(name->next, buckets[name->bucket]);
    SET(buckets[name->bucket], name);
}

static inline void add(struct name *name)
{
    pthread_spin_lock(&lock);
    name->moves = 0;
    link_in(name, name->key);
    pthread_spin_unlock(&lock);
}

static inline bool rename_to(struct name *old, uint64_t key)
{
    struct name **place;

    pthread_spin_lock(&lock);
    SET(renames, renames + 1);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    SET(old->moves, old->moves + 1);
    for (place = &buckets[old->bucket]; *place != old;)
        place = &(*place)->next;
    SET(*place, old->next);
    link_in(old, key);
    SET(old->moves, old->moves + 1);
    SET(renames, renames + 1);
    pthread_spin_unlock(&lock);
    prudence_read_unlock();
    return false;
}

#include "names_loop.h"

static void start(void)
{
    cache = prudence_cache_create("names", sizeof(struct name), NULL);
    if (!cache || pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE))
        abort();
}

static void make_and_fill(uint64_t size)
{
    for (bucket_count = 2; bucket_count < size;)
        bucket_count *= 2;
    buckets = calloc(bucket_count, sizeof(struct name *));
    if (!buckets)
        abort();
    fill(size);
}

const struct subject subject_rename_moved = {
    "rename-moved", "like the dcache: the object is moved, and readers check for it",
    .start = start, .fill = make_and_fill, .run = run};
