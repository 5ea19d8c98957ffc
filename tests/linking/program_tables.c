/* SPDX-License-Identifier: MIT */
/*
 * Threads add, replace and remove objects in a hash table that is resized, one of values, a table of ids that grows, and maps of
 * numbers and of strings, while they look objects up and walk; and before, one hands all over to another. Built with ThreadSanitizer by
 * test_thread_sanitizer.py; the library is not. RACE, in the environment:
 *
 *   only-hash, only-ids, ...   that table alone is used
 *   hash, ids, map, strings, values: each object is written once more when readers can find it
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prudence/hash_values.h>
#include <prudence/id_table.h>
#include <prudence/map_values.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#define THREADS 3
#define ROUNDS  3000
#define KEYS    300 /* of each thread; many enough for resizes, and for nodes of all sizes */

struct object {
    struct prudence_hash_node node;
    struct prudence_map_node map_node;
    unsigned long key, value, copy;
};

static struct prudence_hash *table;
static struct prudence_id_table *ids;
static struct prudence_map *map, *strings;
static struct prudence_hash_values *values;
static const char *race = "";
static bool handed_over;

static bool wants(const char *name)
{
    return !*race || !strcmp(race, name) || (!strncmp(race, "only-", 5) && !strcmp(race + 5, name));
}

static struct object *make(unsigned long key)
{
    struct object *object = prudence_malloc(sizeof *object);

    if (!object)
        abort();
    object->key = key;
    object->value = object->copy = key + 1;
    object->map_node.key = key;
    return object;
}

/* With a race: what is in the table already is written. */
static void touch(struct object *object, const char *name)
{
    if (!strcmp(race, name))
        object->value = object->copy = object->key + 1;
}

static void check(const struct object *object)
{
    if (object && (object->value != object->copy || object->value != object->key + 1))
        abort();
}

static bool has_key(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct object, node)->key == *(const unsigned long *)key;
}

static struct object *of_hash(struct prudence_hash_node *node)
{
    return node ? prudence_hash_entry(node, struct object, node) : NULL;
}

static struct object *of_map(struct prudence_map_node *node)
{
    return node ? prudence_map_entry(node, struct object, map_node) : NULL;
}

/* ------------------------------------------------------------------------------------------ updates */

static void update_hash(unsigned long key, bool removes)
{
    struct object *fresh = removes ? NULL : make(key), *old;

    prudence_read_lock();
    if (fresh) {
        old = of_hash(prudence_hash_add_replace(table, key, has_key, &key, &fresh->node));
        touch(fresh, "hash");
    } else {
        old = of_hash(prudence_hash_lookup(table, key, has_key, &key));
        if (old && prudence_hash_remove(table, &old->node))
            old = NULL;
    }
    prudence_read_unlock();
    check(old);
    prudence_free_deferred(old);
}

static void update_ids(unsigned long key, bool removes)
{
    struct object *fresh = removes ? NULL : make(key), *old;
    uint32_t id = (uint32_t)key;

    if (removes) {
        old = prudence_id_remove(ids, id);
    } else {
        old = prudence_id_replace(ids, id, fresh);
        if (!old && prudence_id_insert(ids, fresh, &id))
            abort();
        touch(fresh, "ids");
    }
    check(old);
    prudence_free_deferred(old);
}

static void update_map(unsigned long key, bool removes)
{
    struct object *fresh = removes ? NULL : make(key), *old;
    struct prudence_map_node *replaced;

    if (removes) {
        old = of_map(prudence_map_remove(map, key));
    } else {
        if (prudence_map_add_replace(map, &fresh->map_node, &replaced))
            abort();
        touch(fresh, "map");
        old = of_map(replaced);
    }
    check(old);
    prudence_free_deferred(old);
}

static size_t text_of(char text[32], unsigned long key)
{
    return (size_t)snprintf(text, 32, "a beginning/%03lu%s", key % 1000, key % 2 ? "/more" : "");
}

static void update_strings(unsigned long key, bool removes)
{
    struct object *fresh = removes ? NULL : make(key);
    char text[32];
    size_t length = text_of(text, key);
    void *old = NULL;

    if (removes) {
        old = prudence_map_erase_bytes(strings, text, length);
    } else {
        if (prudence_map_put_bytes(strings, text, length, fresh, &old))
            abort();
        touch(fresh, "strings");
    }
    prudence_free_deferred(old);
}

/* The second value is put into the entry of the first. */
static void update_values(unsigned long key, bool removes)
{
    char text[32];
    size_t length = text_of(text, key);

    for (unsigned i = 0; i < 2; i++) {
        struct object *fresh = removes ? NULL : make(key);
        void *old = NULL;

        if (removes)
            old = prudence_hash_values_erase_bytes(values, text, length);
        else if (prudence_hash_values_put_bytes(values, text, length, fresh, &old))
            abort();
        if (fresh)
            touch(fresh, "values");
        check(old);
        prudence_free_deferred(old);
    }
}

/* ------------------------------------------------------------------------------------------ readers */

static void look_up(unsigned long key)
{
    char text[32];
    size_t length = text_of(text, key);

    prudence_read_lock();
    check(of_hash(prudence_hash_lookup(table, key, has_key, &key)));
    check(prudence_id_lookup(ids, (uint32_t)key));
    check(of_map(prudence_map_lookup(map, key)));
    check(of_map(prudence_map_ceiling(map, key)));
    check(of_map(prudence_map_highest(map)));
    check(prudence_map_get_bytes(strings, text, length));
    check(prudence_hash_values_get_bytes(values, text, length));
    prudence_read_unlock();
}

static void walk(void)
{
    struct prudence_hash_walk of_table;
    struct prudence_map_walk of_tree;
    struct prudence_hash_values_walk of_values;
    struct prudence_hash_node *node;
    struct prudence_map_node *place;
    void *object;
    uint32_t id;

    prudence_read_lock();
    prudence_hash_for_each(&of_table, table, node) check(of_hash(node));
    prudence_id_for_each(ids, id, object) check(object);
    prudence_map_for_each(&of_tree, map, place) check(of_map(place));
    prudence_map_for_each(&of_tree, strings, place) check(prudence_map_value(place));
    prudence_hash_values_for_each(&of_values, values, object) check(object);
    prudence_read_unlock();
}

/* This thread takes no lock that updates take, so all that it has of the writer is what it finds. */
static void *only_read(void *unused)
{
    while (!__atomic_load_n(&handed_over, __ATOMIC_RELAXED))
        sched_yield();
    for (unsigned long key = 0; key < KEYS; key++)
        look_up(key);
    walk();
    return unused;
}

static void update(unsigned long key, bool removes)
{
    if (wants("hash"))
        update_hash(key, removes);
    if (wants("ids"))
        update_ids(key, removes);
    if (wants("map"))
        update_map(key, removes);
    if (wants("strings"))
        update_strings(key, removes);
    if (wants("values"))
        update_values(key, removes);
}

/* What was there before a table was resized, and is not looked at before. */
static void hand_over(void)
{
    pthread_t reader;

    if (pthread_create(&reader, NULL, only_read, NULL))
        abort();
    for (unsigned long key = 0; key < KEYS; key++)
        update(key, false);
    __atomic_store_n(&handed_over, true, __ATOMIC_RELAXED);
    pthread_join(reader, NULL);
}

static void *run(void *number)
{
    unsigned long first = (unsigned long)(uintptr_t)number * KEYS;

    for (unsigned long i = 0; i < ROUNDS; i++) {
        unsigned long key = first + i * 7 % KEYS;

        update(key, i % 5 == 4 || i % 1000 > 800);
        look_up(i * 11 % (THREADS * KEYS));
        if (i % 100 == 0)
            walk();
    }
    return NULL;
}

int main(void)
{
    struct prudence_map_attr attr = {.size = sizeof attr,
                                     .flags = PRUDENCE_MAP_BYTES | PRUDENCE_MAP_VALUES};
    struct prudence_hash_attr of_bytes = {.size = sizeof of_bytes, .flags = PRUDENCE_HASH_BYTES};
    pthread_t threads[THREADS];

    if (getenv("RACE"))
        race = getenv("RACE");
    table = prudence_hash_create("test", NULL);
    ids = prudence_id_table_create("test", NULL);
    map = prudence_map_create("test", NULL);
    strings = prudence_map_create("test", &attr);
    values = prudence_hash_values_create("test", &of_bytes);
    if (!table || !ids || !map || !strings || !values)
        abort();
    hand_over();
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)i))
            abort();
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
