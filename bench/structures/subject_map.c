/* SPDX-License-Identifier: MIT */
/* <prudence/map.h>, with objects of a cache of its own. */
#include <prudence/map.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include <stdlib.h>

#include "prudence_sections.h"
#include "subject.h"

struct object {
    struct prudence_map_node node;
    uint64_t value;
};

static struct prudence_map *map;
static struct prudence_cache *cache;

static void start(void)
{
    map = prudence_map_create("bench", NULL);
    cache = prudence_cache_create("objects", sizeof(struct object), NULL);
    if (!map || !cache)
        abort();
}

static inline bool find(uint64_t key, uint64_t *value)
{
    struct prudence_map_node *node = prudence_map_lookup(map, hash_of(key));

    if (node)
        *value = prudence_map_entry(node, struct object, node)->value;
    return node;
}

static inline bool walk(uint64_t key, unsigned count, uint64_t *sum)
{
    struct prudence_map_walk place;
    struct prudence_map_node *node;

    prudence_map_for_each_from(&place, map, hash_of(key), node)
    {
        *sum += prudence_map_entry(node, struct object, node)->value;
        if (!--count)
            break;
    }
    return !count;
}

static inline bool flip(uint64_t key)
{
    struct prudence_map_node *node = prudence_map_remove(map, hash_of(key));
    struct object *object;

    if (node) {
        prudence_cache_free_deferred(cache, prudence_map_entry(node, struct object, node));
        return false;
    }
    object = prudence_cache_alloc(cache);
    object->node.key = hash_of(key);
    object->value = key;
    if (!prudence_map_add_unique(map, &object->node, NULL))
        return true;
    prudence_cache_free(cache, object);
    return false;
}

#define LOOP_WALKS
#include "loop.h"

const struct subject subject_map = {
    "map", "prudence_map, its objects in a cache", start, nothing, fill, nothing, run, nothing};
