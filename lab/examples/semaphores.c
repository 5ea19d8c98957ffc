/* SPDX-License-Identifier: MIT */
/*
 * The semaphores of System V IPC: numbered sets, used all the time, and sometimes made and removed.
 * Linux guarded numbers and sets by one lock, until RCU found the set and a lock in each set
 * guarded its values. docs/how-to/example-semaphores.md
 */
#include "example.h"

#include <prudence/id_table.h>

#define SETS 64

struct set {
    pthread_mutex_t lock;
    bool removed; /* under the lock */
    int values[4];
};

static struct prudence_cache *cache;

/* Returns one of the eight sets of this thread. There are enough sets for eight threads. */
static uint32_t own_set(unsigned random)
{
    static unsigned threads;
    static __thread unsigned self;

    if (self == 0)
        self = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
    return (8 * self + random % 8) % SETS;
}

static struct set *make(void)
{
    struct set *set = prudence_cache_alloc(cache);

    MUST(set);
    *set = (struct set){.lock = PTHREAD_MUTEX_INITIALIZER};
    return set;
}

/* Changes a value up, and down again the next time. The change would be lost on a removed set. */
static long operate(struct set *set, unsigned random)
{
    return set->removed ? WRONG : (set->values[random / 8 % 4] ^= 1);
}

/* --------------------------------------------------------------------------------------- before */

static struct set *sets[SETS];
static pthread_mutex_t ids = PTHREAD_MUTEX_INITIALIZER; /* protects all sets and their contents */

static long read_before(unsigned random)
{
    long value;

    pthread_mutex_lock(&ids);
    value = operate(sets[own_set(random)], random);
    pthread_mutex_unlock(&ids);
    return value;
}

static void update_before(unsigned random)
{
    struct set *fresh = make();

    pthread_mutex_lock(&ids);
    prudence_cache_free(cache, sets[own_set(random)]);
    sets[own_set(random)] = fresh;
    pthread_mutex_unlock(&ids);
}

/* ---------------------------------------------------------------------------------------- after */

static struct prudence_id_table *table;

/* Returns the locked set, or NULL if there is none with this number. Call inside a section. */
static struct set *lock_set(uint32_t id)
{
    struct set *set = prudence_id_table_lookup(table, id);

    if (!set)
        return NULL;
    meanwhile();
    pthread_mutex_lock(&set->lock);
    if (!set->removed || mistake) /* the mistake: it was found, so it exists? */
        return set;
    pthread_mutex_unlock(&set->lock);
    return NULL;
}

static long read_after(unsigned random)
{
    struct set *set;
    long value = 0; /* no such set */

    prudence_read_lock();
    set = lock_set(own_set(random));
    if (set) {
        value = operate(set, random);
        pthread_mutex_unlock(&set->lock);
    }
    prudence_read_unlock();
    return value;
}

/* Removes a set, unless another thread is doing that, and makes one with the lowest free number. */
static void update_after(unsigned random)
{
    struct set *old;
    void *erased;
    uint32_t id;

    if (prudence_id_table_erase(table, own_set(random), &erased))
        return;
    old = erased;
    pthread_mutex_lock(&old->lock);
    old->removed = true;
    pthread_mutex_unlock(&old->lock);
    prudence_cache_free_deferred(cache, old);
    MUST(prudence_id_table_add(table, make(), &id) == 0);
}

/* ---------------------------------------------------------------------------------------- check */

static void remove_set(void)
{
    update_after(1);
}

static const char *check(void)
{
    example_meanwhile = remove_set;
    return read_after(1) != 0 ? "an operation was made on a set that was removed" : NULL;
}

static void set_up(void)
{
    uint32_t id;

    MUST(cache = prudence_cache_create("semaphores", sizeof(struct set), NULL));
    MUST(table = prudence_id_table_create("semaphores", NULL));
    for (unsigned i = 0; i < SETS; i++) {
        sets[i] = make();
        MUST(prudence_id_table_add(table, make(), &id) == 0 && id == i);
    }
}
