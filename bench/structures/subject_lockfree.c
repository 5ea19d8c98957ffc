/* SPDX-License-Identifier: MIT */
/* <prudence/lockfree_hash.h>, with as many buckets as objects. */
#include <prudence/lockfree_hash.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include <stdlib.h>

struct object {
    struct prudence_hash_node node;
    uint64_t key, value;
};

static struct prudence_lockfree_hash *table;
static struct prudence_cache *cache;

static void start(void)
{
    cache = prudence_cache_create("objects", sizeof(struct object), NULL);
    if (!cache)
        abort();
}

static void nothing(void)
{
}

static inline bool has_key(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct object, node)->key == *(const uint64_t *)key;
}

static inline void read_begin(void)
{
    prudence_read_lock();
}

static inline void read_end(void)
{
    prudence_read_unlock();
}

static inline bool find(uint64_t key, uint64_t *value)
{
    struct prudence_hash_node *node =
        prudence_lockfree_hash_lookup(table, prudence_hash_mix(key), has_key, &key);

    if (node)
        *value = prudence_hash_entry(node, struct object, node)->value;
    return node;
}

static inline bool flip(uint64_t key)
{
    uint64_t hash = prudence_hash_mix(key);
    struct prudence_hash_node *node;
    struct object *object;
    bool removed = false;

    prudence_read_lock();
    node = prudence_lockfree_hash_lookup(table, hash, has_key, &key);
    if (node)
        removed = !prudence_lockfree_hash_remove(table, node);
    prudence_read_unlock();
    if (node) {
        if (removed)
            prudence_cache_free_deferred(cache, prudence_hash_entry(node, struct object, node));
        return false;
    }
    object = prudence_cache_alloc(cache);
    object->key = object->value = key;
    prudence_read_lock();
    node = prudence_lockfree_hash_add_unique(table, hash, has_key, &key, &object->node);
    prudence_read_unlock();
    if (node)
        prudence_cache_free(cache, object);
    return !node;
}

#include "loop.h"

static void make_and_fill(uint64_t size)
{
    table = prudence_lockfree_hash_create(size);
    if (!table)
        abort();
    fill(size);
}

const struct subject subject_lockfree = {
    "lockfree",    "prudence_lockfree_hash, its objects in a cache",
    start,         nothing,
    make_and_fill, nothing,
    run,           nothing};
