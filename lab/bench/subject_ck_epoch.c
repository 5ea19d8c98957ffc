/* SPDX-License-Identifier: MIT */
/*
 * Concurrency Kit's epochs over malloc. Callbacks wait in a record of the thread that retired the
 * object; the thread calls the safe ones itself, when it polls: once in POLL_EVERY objects.
 */
#include <ck_epoch.h>
#include <stdlib.h>

#include "sized_pool.h"

#define POLL_EVERY 64

static ck_epoch_t epoch;
static __thread ck_epoch_record_t *record;
static __thread unsigned retired;

static void pool_destroy(union pool pool)
{
    (void)pool;
    ck_epoch_barrier(record);
}

static inline void *allocate(union pool pool)
{
    return malloc(pool.size);
}

static void free_object(ck_epoch_entry_t *entry)
{
    reclaimed_one();
    free(entry);
}

static void free_timed_object(ck_epoch_entry_t *entry)
{
    timed_object_freed(entry);
    free_object(entry);
}

static inline void call_and_poll(void *object, ck_epoch_cb_t *callback)
{
    ck_epoch_call(record, object, callback);
    if (++retired % POLL_EVERY == 0)
        ck_epoch_poll(record);
}

static inline void retire(union pool pool, void *object)
{
    (void)pool;
    call_and_poll(object, free_object);
}

static inline void retire_timed(union pool pool, void *object)
{
    (void)pool;
    call_and_poll(object, free_timed_object);
}

static inline void poll(void)
{
    ck_epoch_poll(record);
}

static inline void read_lock(void)
{
    ck_epoch_begin(record, NULL);
}

static inline void read_unlock(void)
{
    ck_epoch_end(record, NULL);
}

static void start(struct run *run)
{
    (void)run;
    ck_epoch_init(&epoch);
}

static void thread_start(void)
{
    record = aligned_alloc(CACHE_LINE, sizeof *record);
    if (!record)
        abort();
    ck_epoch_register(&epoch, record, NULL);
}

/* Keeps the record, because the epoch has a list of them. */
static void thread_stop(void)
{
    ck_epoch_barrier(record);
    ck_epoch_unregister(record);
}

static inline void discard(union pool pool, void *object)
{
    (void)pool;
    free(object);
}

static const struct operations ck_epoch_operations = {
    .pool_create = pool_create,
    .pool_destroy = pool_destroy,
    .allocate = allocate,
    .retire = retire,
    .discard = discard,
    .retire_timed = retire_timed,
    .poll = poll,
    .read_lock = read_lock,
    .read_unlock = read_unlock,
    .times_callbacks = true,
};

FAMILY_LOOPS(ck_epoch)

const struct family ck_epoch_family = {
    .library = "ck",
    .version = CK_VERSION,
    .deferring = true,
    .start = start,
    .thread_start = thread_start,
    .thread_stop = thread_stop,
    .latent = reclaimed_latent,
    FAMILY_MEMBERS(ck_epoch),
};
