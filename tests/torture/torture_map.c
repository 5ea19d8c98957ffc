/* SPDX-License-Identifier: MIT */
/*
 * The ordered map under many more threads than CPUs (torture_map.h).
 *
 * Variants: numbers side by side, or far from each other, or strings with common beginnings;
 * readers with fences; CPUs with a lock instead of rseq.
 */
#define _GNU_SOURCE
#include <prudence/map.h>

#include "support/torture_updates.h"

#define TEXT 24

struct object {
    struct torture_object head;
    struct prudence_map_bytes node;
    char text[TEXT];
};

static struct prudence_map *map;
static unsigned shift;

#include "support/torture_map.h"

static size_t text_of(char *text, uint64_t key)
{
    return (size_t)snprintf(text, TEXT, "%u/common/%05llu", (unsigned)(key / 1000),
                            (unsigned long long)key);
}

static struct torture_object *object_of(const struct prudence_map_node *node)
{
    return node ? &prudence_map_entry(node, struct object, node.node)->head : NULL;
}

static struct prudence_map_node *node_of(struct torture_object *object)
{
    return &((struct object *)object)->node.node;
}

static uint64_t look_at(const struct prudence_map_node *node)
{
    return object_seen(object_of(node));
}

static struct torture_object *make(uint64_t key)
{
    struct object *object = object_make(key);

    if (strings)
        prudence_map_set_bytes(&object->node, object->text, text_of(object->text, key));
    else
        object->node.node.key = key << shift;
    return &object->head;
}

static struct torture_object *get(uint64_t key)
{
    char text[TEXT];

    return object_of(strings ? prudence_map_lookup_bytes(map, text, text_of(text, key))
                             : prudence_map_lookup(map, key << shift));
}

static struct torture_object *put(uint64_t key, struct torture_object *fresh)
{
    struct prudence_map_node *old = updates_unset();

    TORTURE_CHECK(prudence_map_put(map, node_of(fresh), &old) == 0);
    return object_of(old);
}

static struct torture_object *insert(uint64_t key, struct torture_object *fresh)
{
    struct prudence_map_node *there = updates_unset();
    int error = prudence_map_add(map, node_of(fresh), &there);

    TORTURE_CHECK(error == (there ? EEXIST : 0));
    return object_of(there);
}

/* Finds `old` once more, because another thread may have removed it. */
static bool exchange(uint64_t key, struct torture_object *old, struct torture_object *fresh)
{
    int error = ENOENT;

    prudence_read_lock();
    if (look_up(key) == old)
        error = prudence_map_replace(map, node_of(old), node_of(fresh));
    prudence_read_unlock();
    TORTURE_CHECK(error == 0 || error == ENOENT);
    return !error;
}

static struct torture_object *erase(uint64_t key)
{
    char text[TEXT];

    return object_of(strings ? map_erase_bytes_found(map, text, text_of(text, key))
                             : map_erase_found(map, key << shift));
}

static int torture(const char *variant, double seconds)
{
    uint64_t end = torture_end_of(seconds);
    struct prudence_map_attr attr = {.size = sizeof attr};
    struct prudence_map_stats stats;

    strings = !strcmp(variant, "strings");
    shift = strcmp(variant, "dense") ? 37 : 0;
    attr.flags = strings ? PRUDENCE_MAP_BYTES : 0;
    map = prudence_map_create("torture", &attr);
    cache = prudence_cache_create("torture", sizeof(struct object), NULL);
    add_lasting();
    torture_start(reader, READERS, 1);
    torture_start(writer, WRITERS, 0);
    torture_sleep_until(end);
    torture_wait_for(&walks);
    torture_join();
    empty();
    prudence_map_stats(map, &stats);
    TORTURE_CHECK(stats.objects == 0 && stats.nodes == 0);
    TORTURE_CHECK(prudence_map_destroy(map, NULL, NULL) == 0);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
    TORTURE_SAY({"updates", updates}, {"lookups", lookups}, {"walks", walks},
                {"retired", torture_found_retired}, {"nodes replaced", stats.replaced});
    return torture_end(variant);
}

TORTURE(torture, {"dense", ""}, {"sparse", ""}, {"strings", ""}, {"fenced", "reader_mode=fenced"},
        {"lock", "rseq=0"})
