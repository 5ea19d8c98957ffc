/* SPDX-License-Identifier: MIT */
/*
 * Concurrency Kit's table; with strings, the one for byte strings, which points to the strings in
 * the objects. Numbers are in the table, next to a pointer to the object (direct mode). Uses
 * CK_HT_WORKLOAD_DELETE, which the manual requires for removals.
 */
#include <ck_ht.h>

#include "ck_family.h"

static ck_ht_t table;

static void hash_key(ck_ht_hash_t *hash, const void *key, size_t length, uint64_t seed)
{
    (void)length, (void)seed;
#ifdef STRING_KEYS
    hash->value = key_hash((const bench_key *)((const char *)key - offsetof(bench_key, text)));
#else
    hash->value = hash_of(*(const uintptr_t *)key);
#endif
}

static void start(void)
{
#ifdef STRING_KEYS
    const unsigned mode = CK_HT_MODE_BYTESTRING | CK_HT_WORKLOAD_DELETE;
#else
    const unsigned mode = CK_HT_MODE_DIRECT | CK_HT_WORKLOAD_DELETE;
#endif

    ck_epoch_init(&epoch);
    if (!ck_ht_init(&table, mode, hash_key, &allocator, 64, 1))
        abort();
}

#ifdef STRING_KEYS

static inline void set_key(ck_ht_entry_t *entry, const bench_key *key)
{
    ck_ht_entry_key_set(entry, key->text, key->length);
}

static inline ck_ht_hash_t hash_for(const bench_key *key)
{
    ck_ht_hash_t hash;

    ck_ht_hash(&hash, &table, key->text, key->length);
    return hash;
}

static inline void set_entry(ck_ht_entry_t *entry, ck_ht_hash_t hash, struct object *object)
{
    ck_ht_entry_set(entry, hash, object->key.text, object->key.length, object);
}

static inline struct object *object_of(ck_ht_entry_t *entry)
{
    return ck_ht_entry_value(entry);
}

#else

/* Adds 1, because 0 is no key there. */
static inline void set_key(ck_ht_entry_t *entry, const bench_key *key)
{
    ck_ht_entry_key_set_direct(entry, *key + 1);
}

static inline ck_ht_hash_t hash_for(const bench_key *key)
{
    ck_ht_hash_t hash;

    ck_ht_hash_direct(&hash, &table, *key + 1);
    return hash;
}

static inline void set_entry(ck_ht_entry_t *entry, ck_ht_hash_t hash, struct object *object)
{
    ck_ht_entry_set_direct(entry, hash, object->key + 1, (uintptr_t)object);
}

static inline struct object *object_of(ck_ht_entry_t *entry)
{
    return (struct object *)ck_ht_entry_value_direct(entry);
}

#endif

static inline bool find(uint64_t number, uint64_t *value)
{
    const bench_key key = key_of(number);
    ck_ht_entry_t entry;

    set_key(&entry, &key);
    if (!ck_ht_get_spmc(&table, hash_for(&key), &entry))
        return false;
    *value = object_of(&entry)->value;
    return true;
}

static inline bool flip(uint64_t number)
{
    const bench_key key = key_of(number);
    const ck_ht_hash_t hash = hash_for(&key);
    struct object *old = NULL;
    ck_ht_entry_t entry;

    set_key(&entry, &key);
    pthread_mutex_lock(&writer);
    if (ck_ht_remove_spmc(&table, hash, &entry)) {
        old = object_of(&entry);
    } else {
        set_entry(&entry, hash, object_make(&key, number));
        if (!ck_ht_put_spmc(&table, hash, &entry))
            abort();
    }
    pthread_mutex_unlock(&writer);
    if (old)
        object_retire(old);
    return !old;
}

#include "loop.h"

const struct subject SUBJECT(ck_ht) = {"ck_ht",
                                       "Concurrency Kit's table, keys in it, one writer at a time, "
                                       "its objects from malloc and to epochs",
                                       .start = start,
                                       .thread_start = thread_start,
                                       .fill = fill,
                                       .run = run,
                                       .thread_end = thread_end};
