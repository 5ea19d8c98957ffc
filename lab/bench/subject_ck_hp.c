/* SPDX-License-Identifier: MIT */
/*
 * Concurrency Kit's hazard pointers over malloc. Retired objects wait in a record of the thread
 * that retired them; the thread scans all names once in RETIRED_MOST objects, and frees those
 * that have none.
 */
#include <ck_hp.h>
#include <stdlib.h>

#include "sized_pool.h"

#define RETIRED_MOST 64 /* as often as the epochs of Concurrency Kit poll */

static ck_hp_t hazards;
static __thread ck_hp_record_t *record;

static void free_object(void *object)
{
    reclaimed_one();
    free(object);
}

static void start(struct run *run)
{
    (void)run;
    ck_hp_init(&hazards, 1, RETIRED_MOST, free_object);
}

/* Keeps the record and its names, because `hazards` has a list of them. */
static void thread_start(void)
{
    void **names = aligned_alloc(2 * CACHE_LINE, 2 * CACHE_LINE);

    record = aligned_alloc(CACHE_LINE, (sizeof *record + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    if (!record || !names)
        abort();
    names[0] = NULL;
    ck_hp_register(&hazards, record, names);
}

static void thread_stop(void)
{
    ck_hp_purge(record);
}

static void pool_destroy(union pool pool)
{
    (void)pool;
    ck_hp_purge(record);
}

/* The library's head is in the object, which must have room. */
static inline void *allocate(union pool pool)
{
    return malloc(pool.size < sizeof(ck_hp_hazard_t) ? sizeof(ck_hp_hazard_t) : pool.size);
}

static inline void retire(union pool pool, void *object)
{
    (void)pool;
    ck_hp_free(record, object, object, object);
}

static inline void discard(union pool pool, void *object)
{
    (void)pool;
    free(object);
}

#include "naming.h"

static inline void protect(void)
{
    void *seen = __atomic_load_n(&linked, __ATOMIC_RELAXED), *named;

    do {
        named = seen;
        ck_hp_set_fence(record, 0, named);
        seen = __atomic_load_n(&linked, __ATOMIC_ACQUIRE);
    } while (seen != named);
}

/* ck_hp_clear() is a relaxed store, and a loop. */
static inline void reset(void)
{
    __atomic_store_n(&record->pointers[0], NULL, __ATOMIC_RELEASE);
}

static const struct operations ck_hp_operations = {
    .pool_create = pool_create,
    .pool_destroy = pool_destroy,
    .allocate = allocate,
    .retire = retire,
    .discard = discard,
    .retire_timed = retire,
    .read_lock = protect,
    .read_unlock = reset,
    .relink = relink,
};

NAMING_LOOPS(ck_hp)

const struct family ck_hp_family = {
    .library = "ck",
    .version = CK_VERSION,
    .deferring = true,
    .start = start,
    .thread_start = thread_start,
    .thread_stop = thread_stop,
    .latent = reclaimed_latent,
    NAMING_MEMBERS(ck_hp),
};
