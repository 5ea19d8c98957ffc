/* SPDX-License-Identifier: MIT */
/*
 * The operations on our hash tables, as a template: the file that includes this has defined
 * `table`, and
 *     FUNCTION(name)                   the table's function of this name
 * Objects are in a cache of their own.
 */
#ifndef BENCH_STRUCTURES_HASH_FAMILY_H
#define BENCH_STRUCTURES_HASH_FAMILY_H

#include <stdlib.h>

#include <prudence/hash.h>
#include <prudence/prudence.h>

#include "keys.h"
#include "prudence_sections.h"

struct object {
    struct prudence_hash_node node;
    bench_key key;
    uint64_t value;
};

static struct prudence_cache *cache;

static void start(void)
{
    cache = prudence_cache_create("objects", sizeof(struct object), NULL);
    if (!cache)
        abort();
}

static inline bool has_key(const struct prudence_hash_node *node, const void *key)
{
    return key_same(&prudence_hash_entry(node, const struct object, node)->key, key);
}

static inline bool find(uint64_t number, uint64_t *value)
{
    const bench_key key = key_of(number);
    struct prudence_hash_node *node = FUNCTION(lookup)(table, key_mix(&key), has_key, &key);

    if (node)
        *value = prudence_hash_entry(node, struct object, node)->value;
    return node;
}

static inline bool flip(uint64_t number)
{
    const bench_key key = key_of(number);
    uint64_t hash = key_mix(&key);
    struct prudence_hash_node *node;
    struct object *object;
    bool removed = false;
    int error;

    prudence_read_lock();
    node = FUNCTION(lookup)(table, hash, has_key, &key);
    if (node)
        removed = !FUNCTION(remove)(table, node);
    prudence_read_unlock();
    if (node) {
        if (removed)
            prudence_cache_free_deferred(cache, prudence_hash_entry(node, struct object, node));
        return false;
    }
    object = prudence_cache_alloc(cache);
    object->key = key;
    object->value = number;
    prudence_read_lock();
    error = FUNCTION(add)(table, hash, has_key, &key, &object->node, NULL);
    prudence_read_unlock();
    if (error)
        prudence_cache_free(cache, object);
    return !error;
}

#include "loop.h"

#endif /* BENCH_STRUCTURES_HASH_FAMILY_H */
