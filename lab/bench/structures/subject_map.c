/* SPDX-License-Identifier: MIT */
/* <prudence/map.h>, with objects from a cache of their own. */
#include <prudence/map.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include <stdlib.h>

#include "keys.h"
#include "prudence_sections.h"

struct object {
#ifdef STRING_KEYS
    struct prudence_map_bytes bytes;
    bench_key key;
#else
    struct prudence_map_node node;
#endif
    uint64_t value;
};

static struct prudence_map *map;
static struct prudence_cache *cache;

#ifdef STRING_KEYS

#define MAP_ATTR                                                                                   \
    &(struct prudence_map_attr)                                                                    \
    {                                                                                              \
        .size = sizeof(struct prudence_map_attr), .flags = PRUDENCE_MAP_BYTES                      \
    }
#define FUNCTION(name, map, key) prudence_map_##name##_bytes(map, (key)->text, (key)->length)
#define ERASE(map, key, old)     prudence_map_erase_bytes(map, (key)->text, (key)->length, old)

static inline struct prudence_map_node *set_key(struct object *object, const bench_key *key)
{
    object->key = *key;
    prudence_map_set_bytes(&object->bytes, object->key.text, key->length);
    return &object->bytes.node;
}

static inline struct object *object_of(const struct prudence_map_node *node)
{
    return prudence_map_entry(node, struct object, bytes.node);
}

#else

#define MAP_ATTR                 NULL
#define FUNCTION(name, map, key) prudence_map_##name(map, *(key))
#define ERASE(map, key, old)     prudence_map_erase(map, *(key), old)

static inline struct prudence_map_node *set_key(struct object *object, const bench_key *key)
{
    object->node.key = *key;
    return &object->node;
}

static inline struct object *object_of(const struct prudence_map_node *node)
{
    return prudence_map_entry(node, struct object, node);
}

#endif

static void start(void)
{
    map = prudence_map_create("bench", MAP_ATTR);
    cache = prudence_cache_create("objects", sizeof(struct object), NULL);
    if (!map || !cache)
        abort();
}

static inline bool find(uint64_t number, uint64_t *value)
{
    const bench_key key = place_of(number);
    struct prudence_map_node *node = FUNCTION(lookup, map, &key);

    if (node)
        *value = object_of(node)->value;
    return node;
}

#ifndef STRING_KEYS
static inline bool walk(uint64_t number, unsigned count, uint64_t *sum)
{
    struct prudence_map_walk place;
    struct prudence_map_node *node;

    prudence_map_for_each_from(&place, map, place_of(number), node)
    {
        *sum += object_of(node)->value;
        if (!--count)
            break;
    }
    return !count;
}
#define LOOP_WALKS
#endif

static inline bool flip(uint64_t number)
{
    const bench_key key = place_of(number);
    struct prudence_map_node *node;
    struct object *object;

    if (!ERASE(map, &key, &node)) {
        prudence_cache_free_deferred(cache, object_of(node));
        return false;
    }
    object = prudence_cache_alloc(cache);
    object->value = number;
    if (!prudence_map_add(map, set_key(object, &key), NULL))
        return true;
    prudence_cache_free(cache, object);
    return false;
}

#include "loop.h"

const struct subject SUBJECT(map) = {"map", "prudence_map, its objects in a cache", .start = start,
                                     .fill = fill, .run = run};
