/* SPDX-License-Identifier: MIT */
/*
 * Common code for Concurrency Kit's tables. They allow one writer at a time, so updates take a
 * mutex. Their old arrays, and objects, which are from malloc, wait for epochs; a thread polls once
 * in 64 of its removals, as the benchmark of pairs does.
 */
#ifndef BENCH_STRUCTURES_CK_FAMILY_H
#define BENCH_STRUCTURES_CK_FAMILY_H

#include <ck_epoch.h>
#include <ck_malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "keys.h"

#define POLL_EVERY 64

struct object {
    bench_key key;
    uint64_t value;
    ck_epoch_entry_t entry;
};

/* Precedes each block that the table allocates. */
struct block {
    ck_epoch_entry_t entry;
} __attribute__((aligned(64)));

static ck_epoch_t epoch;
static pthread_mutex_t writer = PTHREAD_MUTEX_INITIALIZER;
static __thread ck_epoch_record_t *record;
static __thread unsigned retired;

static void *table_malloc(size_t size)
{
    struct block *block = malloc(sizeof *block + size);

    return block ? block + 1 : NULL;
}

static void free_block(ck_epoch_entry_t *entry)
{
    free(entry);
}

static void table_free(void *memory, size_t size, bool defer)
{
    struct block *block = (struct block *)memory - 1;

    (void)size;
    if (defer)
        ck_epoch_call(record, &block->entry, free_block);
    else
        free(block);
}

static struct ck_malloc allocator = {.malloc = table_malloc, .free = table_free};

static void thread_start(void)
{
    record = aligned_alloc(128, 1024);
    ck_epoch_register(&epoch, record, NULL);
}

static void thread_end(void)
{
    ck_epoch_barrier(record);
    ck_epoch_unregister(record);
}

static inline void read_begin(void)
{
    ck_epoch_begin(record, NULL);
}

static inline void read_end(void)
{
    ck_epoch_end(record, NULL);
}

static inline struct object *object_make(const bench_key *key, uint64_t value)
{
    struct object *object = malloc(sizeof *object);

    if (!object)
        abort();
    object->key = *key;
    object->value = value;
    return object;
}

static void object_free(ck_epoch_entry_t *entry)
{
    free((char *)entry - offsetof(struct object, entry));
}

static inline void object_retire(struct object *object)
{
    ck_epoch_call(record, &object->entry, object_free);
    if (++retired % POLL_EVERY == 0)
        ck_epoch_poll(record);
}

#endif /* BENCH_STRUCTURES_CK_FAMILY_H */
