/* SPDX-License-Identifier: MIT */
/* The hash table, while another thread resizes it; and faults that the checker must find. */
#include <prudence/hash.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "history.h"
#include "support/updates.h"

/* one or two in each of eight of 64 buckets; from 512 buckets on, each in its own */
#define KEYS 12

struct object {
    struct prudence_hash_node node;
    uint64_t key, value;
};

static struct prudence_hash *table;
static struct prudence_cache *cache;
static uint64_t hashes; /* number of keys with different hashes */

static bool has_key(const struct prudence_hash_node *node, const void *key)
{
    maybe_yield();
    return prudence_hash_entry(node, const struct object, node)->key == *(const uint64_t *)key;
}

static uint64_t hash_of(uint64_t key)
{
    uint64_t factor = prudence_hash_spread_(1), inverse = factor;

    for (unsigned i = 0; i < 6; i++)
        inverse *= 2 - factor * inverse;
    key %= hashes;
    return (key % 4 << 62 | key << 55) * inverse;
}

static struct object *object_of(struct prudence_hash_node *node)
{
    return node ? prudence_hash_entry(node, struct object, node) : NULL;
}

static struct object *look_up(uint64_t key)
{
    return object_of(prudence_hash_lookup(table, hash_of(key), has_key, &key));
}

static struct object *make_object(uint64_t key)
{
    struct object *object = prudence_cache_alloc(cache);

    object->key = key;
    object->value = fresh_value();
    return object;
}

static uint64_t value_of(const struct object *object)
{
    return object ? object->value : 0;
}

static struct object *put(uint64_t key, struct object *fresh)
{
    return object_of(hash_put_found(table, hash_of(key), has_key, &key, &fresh->node));
}

/* Replaces in two steps, so a lookup in between finds neither object. */
static struct object *broken_put(uint64_t key, struct object *fresh)
{
    struct object *old = look_up(key);

    if (!old || prudence_hash_remove(table, &old->node))
        return put(key, fresh);
    maybe_yield();
    prudence_hash_add_duplicate(table, hash_of(key), &fresh->node);
    return old;
}

/* Makes a REMOVE or an EXCHANGE of an object that this thread has found; another thread may have
 * come first. */
static struct object *update_found(struct operation *operation, struct object *found,
                                   struct object *fresh)
{
    int error;

    operation_begins(operation, fresh ? EXCHANGE : REMOVE, found->key, found->value);
    operation->second = value_of(fresh);
    error = fresh ? prudence_hash_replace(table, &found->node, &fresh->node)
                  : prudence_hash_remove(table, &found->node);
    operation_ends(operation, !error);
    return error ? fresh : found;
}

/* Returns the object that the caller must retire. */
static struct object *add(struct operation *operation, uint64_t key, uint64_t choice,
                          struct object *(*put_one)(uint64_t key, struct object *fresh))
{
    struct object *fresh = make_object(key), *old = NULL;

    if (choice < 4) {
        operation_begins(operation, UNIQUE, key, fresh->value);
        old = object_of(hash_add_found(table, hash_of(key), has_key, &key, &fresh->node));
        operation_ends(operation, value_of(old));
        return old ? fresh : NULL;
    }
    if (choice < 9) {
        operation_begins(operation, PUT, key, fresh->value);
        old = put_one(key, fresh);
        operation_ends(operation, value_of(old));
        return old;
    }
    operation_begins(operation, ADD, key, fresh->value);
    prudence_hash_add_duplicate(table, hash_of(key), &fresh->node);
    operation_ends(operation, 0);
    return NULL;
}

static void operate_with(struct operation *operation, uint64_t *random,
                         struct object *(*put_one)(uint64_t key, struct object *fresh))
{
    uint64_t key = below(random, KEYS), choice = below(random, hashes < KEYS ? 29 : 30);
    struct object *found, *garbage = NULL;

    prudence_read_lock();
    found = choice >= 9 && choice < 19 ? look_up(key) : NULL;
    if (found)
        garbage = update_found(operation, found, choice < 16 ? NULL : make_object(key));
    else if (choice < 9 || choice == 29)
        garbage = add(operation, key, choice, put_one);
    else {
        operation_begins(operation, LOOKUP, key, 0);
        operation_ends(operation, value_of(look_up(key)));
    }
    prudence_read_unlock();
    if (garbage)
        prudence_cache_free_deferred(cache, garbage);
}

static void operate(struct operation *operation, uint64_t *random)
{
    operate_with(operation, random, put);
}

static void operate_broken(struct operation *operation, uint64_t *random)
{
    operate_with(operation, random, broken_put);
}

static void resize(uint64_t *random)
{
    prudence_hash_resize(table, UINT64_C(64) << 3 * below(random, 3));
}

static void make(void)
{
    struct prudence_hash_attr attr = {.size = sizeof attr, .flags = PRUDENCE_HASH_FIXED};

    if (!hashes)
        hashes = KEYS;
    table = prudence_hash_create("history", &attr);
    cache = prudence_cache_create("history", sizeof(struct object), NULL);
}

/* Makes keys share their hash. Subjects with such keys have no ADD, because a lookup with
 * duplicates of them may miss (<prudence/hash.h>). */
static void make_equal(void)
{
    hashes = 3;
    make();
}

static void unmake(void)
{
    struct prudence_hash_walk walk;
    struct prudence_hash_node *node;

    prudence_read_lock();
    prudence_hash_for_each(&walk, table, node) prudence_hash_remove(table, node);
    prudence_read_unlock();
    prudence_hash_destroy(table, NULL, NULL);
}

const struct subject hash_subjects[] = {
    {"hash", make, operate, NULL, unmake},
    {"hash-resized", make, operate, resize, unmake},
    {"hash-of-equal-hashes", make_equal, operate, resize, unmake},
    {"broken-hash-replaces-in-two-steps", make, operate_broken, resize, unmake},
    {.name = NULL},
};
