/* SPDX-License-Identifier: MIT */
/*
 * Concurrency Kit's table in direct mode: the key stands in the table, beside a pointer to the object. It allows one writer
 * at a time, so updates take a mutex. Its old arrays and objects wait for epochs.
 */
#include <ck_epoch.h>
#include <ck_ht.h>
#include <pthread.h>
#include <stdlib.h>

#include "subject.h"

#define POLL_EVERY 64

struct object {
    uint64_t key, value;
    ck_epoch_entry_t entry;
};

/* In front of what the table allocates. */
struct block {
    ck_epoch_entry_t entry;
} __attribute__((aligned(64)));

static ck_ht_t table;
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

static void hash_key(ck_ht_hash_t *hash, const void *key, size_t length, uint64_t seed)
{
    (void)length, (void)seed;
    hash->value = hash_of(*(const uintptr_t *)key);
}

static void start(void)
{
    ck_epoch_init(&epoch);
    if (!ck_ht_init(&table, CK_HT_MODE_DIRECT | CK_HT_WORKLOAD_DELETE, hash_key, &allocator, 64, 1))
        abort();
}

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

static void settle(void)
{
}

static inline void read_begin(void)
{
    ck_epoch_begin(record, NULL);
}

static inline void read_end(void)
{
    ck_epoch_end(record, NULL);
}

/* 0 is no key there. */
static inline bool get(uint64_t key, ck_ht_hash_t *hash, ck_ht_entry_t *entry)
{
    ck_ht_hash_direct(hash, &table, key + 1);
    ck_ht_entry_key_set_direct(entry, key + 1);
    return ck_ht_get_spmc(&table, *hash, entry);
}

static inline bool find(uint64_t key, uint64_t *value)
{
    ck_ht_hash_t hash;
    ck_ht_entry_t entry;

    if (!get(key, &hash, &entry))
        return false;
    *value = ((const struct object *)ck_ht_entry_value_direct(&entry))->value;
    return true;
}

static void free_object(ck_epoch_entry_t *entry)
{
    free((char *)entry - offsetof(struct object, entry));
}

static inline void retire(struct object *object)
{
    ck_epoch_call(record, &object->entry, free_object);
    if (++retired % POLL_EVERY == 0)
        ck_epoch_poll(record);
}

static inline bool flip(uint64_t key)
{
    struct object *object, *old = NULL;
    ck_ht_hash_t hash;
    ck_ht_entry_t entry;
    bool there;

    pthread_mutex_lock(&writer);
    there = get(key, &hash, &entry);
    if (there) {
        ck_ht_entry_key_set_direct(&entry, key + 1);
        if (ck_ht_remove_spmc(&table, hash, &entry))
            old = (struct object *)ck_ht_entry_value_direct(&entry);
    } else {
        object = malloc(sizeof *object);
        object->key = object->value = key;
        ck_ht_entry_set_direct(&entry, hash, key + 1, (uintptr_t)object);
        if (!ck_ht_put_spmc(&table, hash, &entry))
            abort();
    }
    pthread_mutex_unlock(&writer);
    if (old)
        retire(old);
    return !there;
}

#include "loop.h"

const struct subject subject_ck_ht = {"ck_ht",
                                      "Concurrency Kit's table, keys in it, one writer at a time, "
                                      "its objects from malloc and to epochs",
                                      start,
                                      thread_start,
                                      fill,
                                      settle,
                                      run,
                                      thread_end};
