/* SPDX-License-Identifier: MIT */
/*
 * The ordered map, while another thread makes its nodes grow and shrink; and faults that the
 * checker must find.
 *
 * Walks, and searches for the nearest key, are recorded as scans: of the keys found, and of those
 * skipped.
 */
#include <stdio.h>
#include <string.h>

#include <prudence/map.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "history.h"
#include "support/updates.h"

#define KEYS    48 /* more than a walk fetches at once */
#define PASSING 40 /* objects of the disturbing thread, between the keys */

struct object {
    struct prudence_map_bytes node;
    uint64_t key, value;
};

static struct prudence_map *map;
static struct prudence_cache *cache;
static bool strings;
static char texts[2 * KEYS][48];

/* Returns numbers with three lengths of common beginnings; an odd `place` is between two keys. */
static uint64_t number_of(uint64_t place)
{
    return place / 16 << 40 | place % 16 << 8;
}

/* Makes two of three texts longer than the ones after them; all share more than a prefix holds. */
static void make_texts(void)
{
    for (unsigned i = 0; i < 2 * KEYS; i++)
        snprintf(texts[i], sizeof texts[i], "a beginning of all/%02u%s", i,
                 i % 3 ? "/and the rest of it" : "");
}

static void set_key(struct object *object, uint64_t place)
{
    if (strings)
        prudence_map_set_bytes(&object->node, texts[place], strlen(texts[place]));
    else
        object->node.node.key = number_of(place);
}

static struct object *object_of(struct prudence_map_node *node)
{
    return node ? prudence_map_entry(node, struct object, node.node) : NULL;
}

static struct object *look_up(uint64_t key)
{
    const char *text = texts[2 * key];

    return object_of(strings ? prudence_map_lookup_bytes(map, text, strlen(text))
                             : prudence_map_lookup(map, number_of(2 * key)));
}

static struct object *take(uint64_t key)
{
    const char *text = texts[2 * key];

    return object_of(strings ? map_erase_bytes_found(map, text, strlen(text))
                             : map_erase_found(map, number_of(2 * key)));
}

static struct object *make_object(uint64_t key)
{
    struct object *object = prudence_cache_alloc(cache);

    set_key(object, 2 * key);
    object->key = key;
    object->value = fresh_value();
    return object;
}

static uint64_t value_of(const struct object *object)
{
    return object ? object->value : 0;
}

/* -------------------------------------------------------------------------------------- updates */

static struct object *put(struct object *fresh)
{
    struct prudence_map_node *replaced;

    prudence_map_put(map, &fresh->node.node, &replaced);
    return object_of(replaced);
}

/* Replaces in two steps, so a lookup in between finds neither object. */
static struct object *broken_put(struct object *fresh)
{
    struct object *old = take(fresh->key), *other;

    maybe_yield();
    other = put(fresh);
    return old ? old : other;
}

/* Makes a REMOVE or an EXCHANGE of an object that this thread has found; another thread may have
 * come first. */
static struct object *update_found(struct operation *operation, struct object *found,
                                   struct object *fresh)
{
    int error;

    operation_begins(operation, fresh ? EXCHANGE : REMOVE, found->key, found->value);
    operation->second = value_of(fresh);
    error = fresh ? prudence_map_replace(map, &found->node.node, &fresh->node.node)
                  : prudence_map_remove(map, &found->node.node);
    operation_ends(operation, !error);
    return error ? fresh : found;
}

/* Returns the object that the caller must retire. */
static struct object *add_unique(struct operation *operation, uint64_t key)
{
    struct object *fresh = make_object(key);
    struct prudence_map_node *there = NULL;

    operation_begins(operation, UNIQUE, key, fresh->value);
    prudence_map_add(map, &fresh->node.node, &there);
    operation_ends(operation, value_of(object_of(there)));
    return there ? fresh : NULL;
}

static struct object *replace_or_add(struct operation *operation, uint64_t key,
                                     struct object *(*put_one)(struct object *fresh))
{
    struct object *fresh = make_object(key), *old;

    operation_begins(operation, PUT, key, fresh->value);
    old = put_one(fresh);
    operation_ends(operation, value_of(old));
    return old;
}

static struct object *take_one(struct operation *operation, uint64_t key)
{
    struct object *object;

    operation_begins(operation, TAKE, key, 0);
    object = take(key);
    operation_ends(operation, value_of(object));
    return object;
}

/* ---------------------------------------------------------------------------------------- scans */

static bool is_recorded(const struct object *object)
{
    return object->key < KEYS;
}

static void found(struct operation *operation, const struct object *object)
{
    operation->found[operation->found_count].key = object->key;
    operation->found[operation->found_count++].value = object->value;
}

static struct prudence_map_node *first_from(struct prudence_map_walk *walk, uint64_t key)
{
    const char *text = texts[2 * key];

    return strings ? prudence_map_first_from_bytes(walk, map, text, strlen(text))
                   : prudence_map_first_from(walk, map, number_of(2 * key));
}

static void walk(struct operation *operation, uint64_t from)
{
    struct prudence_map_walk walk;
    struct object *object;

    operation_begins(operation, SCAN, from, KEYS - 1);
    for (object = object_of(first_from(&walk, from)); object;
         object = object_of(prudence_map_next(&walk))) {
        if (is_recorded(object))
            found(operation, object);
        maybe_yield();
    }
    operation_ends(operation, 0);
}

/* Continues by the number of objects so far, so it skips one if another one below is removed. */
static void broken_walk(struct operation *operation, uint64_t from)
{
    struct prudence_map_walk walk;
    struct object *object;
    bool more = true;

    operation_begins(operation, SCAN, from, KEYS - 1);
    while (more) {
        unsigned passed = 0, page = operation->found_count + 8;

        more = false;
        for (object = object_of(first_from(&walk, from)); object && !more;
             object = object_of(prudence_map_next(&walk))) {
            if (is_recorded(object) && passed++ >= operation->found_count)
                found(operation, object);
            more = operation->found_count == page;
        }
        maybe_yield();
    }
    operation_ends(operation, 0);
}

/* Searches for the nearest recorded object above; repeats the search past other objects. */
static void search_above(struct operation *operation, uint64_t key)
{
    const char *text = texts[2 * key];
    struct object *object;

    operation_begins(operation, SCAN, key, KEYS - 1);
    object = object_of(strings ? prudence_map_ceiling_bytes(map, text, strlen(text))
                               : prudence_map_ceiling(map, number_of(2 * key)));
    while (object && !is_recorded(object))
        object = object_of(prudence_map_after(map, &object->node.node));
    operation_ends(operation, 0);
    if (!object)
        return;
    operation->argument = object->key;
    found(operation, object);
}

static void search_below(struct operation *operation, uint64_t key)
{
    const char *text = texts[2 * key];
    struct object *object;

    operation_begins(operation, SCAN, 0, key);
    object = object_of(strings ? prudence_map_floor_bytes(map, text, strlen(text))
                               : prudence_map_floor(map, number_of(2 * key)));
    while (object && !is_recorded(object))
        object = object_of(prudence_map_before(map, &object->node.node));
    operation_ends(operation, 0);
    if (!object)
        return;
    operation->key = object->key;
    found(operation, object);
}

/* ------------------------------------------------------------------------------------ histories */

struct faults {
    struct object *(*put)(struct object *fresh);
    void (*walk)(struct operation *operation, uint64_t from);
};

/* Returns one of six keys for half of all operations. */
static uint64_t some_key(uint64_t *random)
{
    uint64_t key = below(random, KEYS);

    return below(random, 2) ? key : key / 8 * 8;
}

static struct object *update(struct operation *operation, uint64_t key, uint64_t choice,
                             const struct faults *faults)
{
    struct object *there = choice < 10 ? look_up(key) : NULL;

    if (there)
        return update_found(operation, there, choice < 6 ? NULL : make_object(key));
    if (choice < 16)
        return add_unique(operation, key);
    if (choice < 24)
        return replace_or_add(operation, key, faults->put);
    return take_one(operation, key);
}

static void operate_with(struct operation *operation, uint64_t *random, const struct faults *faults)
{
    uint64_t key = some_key(random), choice = below(random, 40);
    struct object *garbage = NULL;

    prudence_read_lock();
    if (choice < 28) {
        garbage = update(operation, key, choice, faults);
    } else if (choice < 36) {
        operation_begins(operation, LOOKUP, key, 0);
        operation_ends(operation, value_of(look_up(key)));
    } else if (choice < 38) {
        faults->walk(operation, key);
    } else if (choice == 38) {
        search_above(operation, key);
    } else {
        search_below(operation, key);
    }
    prudence_read_unlock();
    if (garbage)
        prudence_cache_free_deferred(cache, garbage);
}

static void operate(struct operation *operation, uint64_t *random)
{
    static const struct faults none = {put, walk};

    operate_with(operation, random, &none);
}

static void operate_with_broken_put(struct operation *operation, uint64_t *random)
{
    static const struct faults faults = {broken_put, walk};

    operate_with(operation, random, &faults);
}

static void operate_with_broken_walk(struct operation *operation, uint64_t *random)
{
    static const struct faults faults = {put, broken_walk};

    operate_with(operation, random, &faults);
}

/* Adds and removes objects between the keys, so that larger and smaller nodes replace each
 * other. */
static void disturb(uint64_t *random)
{
    struct object *passing[PASSING];
    uint64_t first = below(random, KEYS);

    for (unsigned i = 0; i < PASSING; i++) {
        passing[i] = make_object(0);
        passing[i]->key = KEYS;
        set_key(passing[i], 2 * ((first + i) % KEYS) + 1);
        prudence_map_add(map, &passing[i]->node.node, NULL);
    }
    for (unsigned i = 0; i < PASSING; i++) {
        prudence_map_remove(map, &passing[i]->node.node);
        prudence_cache_free_deferred(cache, passing[i]);
    }
}

static void make(void)
{
    struct prudence_map_attr attr = {.size = sizeof attr,
                                     .flags = strings ? PRUDENCE_MAP_BYTES : 0};

    make_texts();
    map = prudence_map_create("history", &attr);
    cache = prudence_cache_create("history", sizeof(struct object), NULL);
}

static void make_of_strings(void)
{
    strings = true;
    make();
}

static void dispose(struct prudence_map_node *node, void *unused)
{
    (void)unused;
    prudence_cache_free(cache, object_of(node));
}

static void unmake(void)
{
    prudence_map_destroy(map, dispose, NULL);
}

const struct subject map_subjects[] = {
    {"map", make, operate, disturb, unmake},
    {"map-of-strings", make_of_strings, operate, disturb, unmake},
    {"broken-map-replaces-in-two-steps", make, operate_with_broken_put, disturb, unmake},
    {"broken-map-walks-by-numbers", make, operate_with_broken_walk, disturb, unmake},
    {.name = NULL},
};
