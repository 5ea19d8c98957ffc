/* SPDX-License-Identifier: MIT */
/*
 * Threads add, replace and remove objects in a hash table that is resized, one without locks, a
 * table of ids that grows, maps of numbers and of strings, a hash table of values, and routes of
 * both families, while they look objects up and walk. Before that, one thread hands all objects
 * over to another. Built with ThreadSanitizer by test_thread_sanitizer.py; the library is not.
 * RACE, in the environment:
 *
 *   only-hash, only-ids, ...   uses only that table: hash, lockfree, ids, map, strings, routes4,
 *                              routes6, values
 *   hash, ids, ...             and each object is written once more when readers can find it
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prudence/hash_bytes.h>
#include <prudence/hash_values.h>
#include <prudence/id_table.h>
#include <prudence/lockfree_hash.h>
#include <prudence/map_values.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/routes.h>

#define THREADS 3
#define ROUNDS  1500
#define KEYS    300 /* of each thread; enough for resizes, and for nodes of all sizes */

struct object {
    struct prudence_hash_node node, lockfree_node;
    struct prudence_map_node map_node;
    unsigned long key, value, copy;
};

static struct prudence_hash *table;
static struct prudence_hash_secret secret;
static struct prudence_id_table *ids;
static struct prudence_lockfree_hash *lockfree;
static struct prudence_map *map;
static struct prudence_map_values *strings;
static struct prudence_routes *routes4, *routes6;
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

/* Makes the race: writes to an object that is already in the table. */
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

static bool has_key_too(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct object, lockfree_node)->key ==
           *(const unsigned long *)key;
}

static struct object *of_hash(struct prudence_hash_node *node)
{
    return node ? prudence_hash_entry(node, struct object, node) : NULL;
}

static struct object *of_lockfree(struct prudence_hash_node *node)
{
    return node ? prudence_hash_entry(node, struct object, lockfree_node) : NULL;
}

static struct object *of_map(struct prudence_map_node *node)
{
    return node ? prudence_map_entry(node, struct object, map_node) : NULL;
}

/* -------------------------------------------------------------------------------------- updates */

static unsigned long hash_of(unsigned long key)
{
    return prudence_hash_number(&secret, key) ^ prudence_hash_bytes(&secret, &key, sizeof key);
}

static void update_hash(unsigned long key, bool removes)
{
    struct object *fresh = removes ? NULL : make(key), *old;
    struct prudence_hash_node *replaced;

    prudence_read_lock();
    if (fresh) {
        prudence_hash_put(table, hash_of(key), has_key, &key, &fresh->node, &replaced);
        old = of_hash(replaced);
        touch(fresh, "hash");
    } else {
        old = of_hash(prudence_hash_lookup(table, hash_of(key), has_key, &key));
        if (old && prudence_hash_remove(table, &old->node))
            old = NULL;
    }
    prudence_read_unlock();
    check(old);
    prudence_free_deferred(old);
}

/* Maps one key of ten to 0: all threads share these and take out each other's objects. */
static unsigned long key_shared(unsigned long key)
{
    return key % 10 ? key : 0;
}

static void update_lockfree(unsigned long key, bool removes)
{
    struct object *fresh = removes ? NULL : make(key), *old;
    struct prudence_hash_node *replaced;

    prudence_read_lock();
    if (fresh) {
        prudence_lockfree_hash_put(lockfree, key, has_key_too, &key, &fresh->lockfree_node,
                                   &replaced);
        old = of_lockfree(replaced);
        touch(fresh, "lockfree");
    } else {
        old = of_lockfree(prudence_lockfree_hash_lookup(lockfree, key, has_key_too, &key));
        if (old && prudence_lockfree_hash_remove(lockfree, &old->lockfree_node))
            old = NULL;
    }
    prudence_read_unlock();
    check(old);
    prudence_free_deferred(old);
}

static void update_ids(unsigned long key, bool removes)
{
    struct object *fresh = removes ? NULL : make(key);
    uint32_t id = (uint32_t)key;
    void *old;

    if (removes) {
        prudence_id_table_erase(ids, id, &old);
    } else {
        if (prudence_id_table_replace(ids, id, fresh, &old) &&
            prudence_id_table_add(ids, fresh, &id))
            abort();
        touch(fresh, "ids");
    }
    check(old);
    prudence_free_deferred(old);
}

static void update_map(unsigned long key, bool removes)
{
    struct object *fresh = removes ? NULL : make(key);
    struct prudence_map_node *old;

    if (removes) {
        prudence_map_erase(map, key, &old);
    } else {
        if (prudence_map_put(map, &fresh->map_node, &old))
            abort();
        touch(fresh, "map");
    }
    check(of_map(old));
    prudence_free_deferred(of_map(old));
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
        prudence_map_values_erase_bytes(strings, text, length, &old);
    } else {
        if (prudence_map_values_put_bytes(strings, text, length, fresh, &old))
            abort();
        touch(fresh, "strings");
    }
    prudence_free_deferred(old);
}

/* Returns prefixes of many lengths, so that nodes get and lose prefixes and children at any
 * place. Two keys may have the same one. */
static struct prudence_routes_prefix prefix_of(unsigned long key)
{
    struct prudence_routes_prefix prefix = {
        {10, (unsigned char)(key * 7), (unsigned char)(key + key / 256)}, 8 + (unsigned)(key % 17)};

    for (unsigned bit = prefix.length; bit < 24; bit++)
        prefix.address[bit / 8] &= (unsigned char)~(0x80 >> bit % 8);
    return prefix;
}

static void update_routes(struct prudence_routes *routes, const char *name, unsigned long key,
                          bool removes)
{
    const struct prudence_routes_prefix prefix = prefix_of(key);
    struct object *fresh = removes ? NULL : make(key);
    uintptr_t value = (uintptr_t)fresh, old = 0;

    if (removes)
        prudence_routes_erase(routes, &prefix, &old);
    else
        while (prudence_routes_replace(routes, &prefix, value, &old) &&
               prudence_routes_add(routes, &prefix, value, NULL)) {
        }
    if (fresh)
        touch(fresh, name);
    check((struct object *)old);
    prudence_free_deferred((struct object *)old);
}

/* Puts the second value into the entry of the first. */
static void update_values(unsigned long key, bool removes)
{
    char text[32];
    size_t length = text_of(text, key);

    for (unsigned i = 0; i < 2; i++) {
        struct object *fresh = removes ? NULL : make(key);
        void *old = NULL;

        if (removes)
            prudence_hash_values_erase_bytes(values, text, length, &old);
        else if (prudence_hash_values_put_bytes(values, text, length, fresh, &old))
            abort();
        if (fresh)
            touch(fresh, "values");
        check(old);
        prudence_free_deferred(old);
    }
}

/* -------------------------------------------------------------------------------------- readers */

static void look_up(unsigned long key)
{
    const struct prudence_routes_prefix prefix = prefix_of(key);
    char text[32];
    size_t length = text_of(text, key);
    uintptr_t found;

    prudence_read_lock();
    check(of_lockfree(prudence_lockfree_hash_lookup(lockfree, key, has_key_too, &key)));
    check((struct object *)prudence_routes_lookup_ipv4(routes4, prefix.address));
    prudence_routes_lookup_many_ipv4(routes4, prefix.address, 1, &found);
    check((struct object *)found);
    check((struct object *)prudence_routes_lookup_ipv6(routes6, prefix.address));
    check(of_hash(prudence_hash_lookup(table, hash_of(key), has_key, &key)));
    check(prudence_id_table_lookup(ids, (uint32_t)key));
    check(of_map(prudence_map_lookup(map, key)));
    check(of_map(prudence_map_ceiling(map, key)));
    check(of_map(prudence_map_highest(map)));
    check(prudence_map_values_get_bytes(strings, text, length));
    check(prudence_hash_values_get_bytes(values, text, length));
    prudence_read_unlock();
}

static void walk(void)
{
    struct prudence_hash_walk of_table;
    struct prudence_lockfree_hash_walk of_lockfree_table;
    struct prudence_routes_walk of_routes;
    struct prudence_map_walk of_tree;
    struct prudence_hash_values_walk of_values;
    struct prudence_id_table_walk of_ids;
    struct prudence_hash_node *node;
    struct prudence_map_node *place;
    uintptr_t route;
    void *object;

    prudence_read_lock();
    for (unsigned long key = 0; key < KEYS; key++) {
        const struct prudence_routes_prefix prefix = prefix_of(key);

        check((struct object *)prudence_routes_get(routes4, &prefix));
    }
    prudence_hash_for_each(&of_table, table, node) check(of_hash(node));
    prudence_lockfree_hash_for_each(&of_lockfree_table, lockfree, node) check(of_lockfree(node));
    prudence_id_table_for_each(&of_ids, ids, object) check(object);
    prudence_map_for_each(&of_tree, map, place) check(of_map(place));
    prudence_map_for_each(&of_tree, prudence_map_values_nodes(strings), place)
        check(prudence_map_values_value(place));
    prudence_routes_for_each(&of_routes, routes6, NULL, route) check((struct object *)route);
    prudence_hash_values_for_each(&of_values, values, object) check(object);
    prudence_read_unlock();
}

static void update(unsigned long key, bool removes)
{
    if (wants("hash"))
        update_hash(key, removes);
    if (wants("lockfree"))
        update_lockfree(key_shared(key), removes);
    if (wants("ids"))
        update_ids(key, removes);
    if (wants("map"))
        update_map(key, removes);
    if (wants("strings"))
        update_strings(key, removes);
    if (wants("routes4"))
        update_routes(routes4, "routes4", key_shared(key), removes);
    if (wants("routes6"))
        update_routes(routes6, "routes6", key_shared(key), removes);
    if (wants("values"))
        update_values(key, removes);
}

/* Each lookup uses only pointers that it finds itself, in one way. */
static void look_up_all(void)
{
    for (unsigned long key = 0; key < KEYS; key++)
        look_up(key);
}

static void replace_half(void)
{
    for (unsigned long key = 0; key < KEYS / 2; key++)
        update(key, false);
}

static void remove_half(void)
{
    for (unsigned long key = KEYS / 2; key < KEYS; key++)
        update(key, true);
}

typedef void way(void);
static way *const ways[] = {look_up_all, walk, replace_half, remove_half};
#define WAYS (sizeof ways / sizeof ways[0])

static void *receive(void *number)
{
    while (!__atomic_load_n(&handed_over, __ATOMIC_RELAXED))
        sched_yield();
    ways[(uintptr_t)number]();
    return NULL;
}

/* Hands over objects inserted before a table was resized, and not read since. */
static void hand_over(void)
{
    pthread_t receivers[WAYS];

    for (uintptr_t i = 0; i < WAYS; i++)
        if (pthread_create(&receivers[i], NULL, receive, (void *)i))
            abort();
    for (unsigned long key = 0; key < KEYS; key++)
        update(key, false);
    __atomic_store_n(&handed_over, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < WAYS; i++)
        pthread_join(receivers[i], NULL);
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
    struct prudence_map_values_attr of_strings = {.size = sizeof of_strings,
                                                  .flags = PRUDENCE_MAP_VALUES_BYTES};
    struct prudence_lockfree_hash_attr of_half = {.size = sizeof of_half,
                                                  .buckets = THREADS * KEYS / 2};
    struct prudence_routes_attr ipv6 = {.size = sizeof ipv6, .family = PRUDENCE_ROUTES_IPV6};
    struct prudence_hash_values_attr of_bytes = {.size = sizeof of_bytes,
                                                 .flags = PRUDENCE_HASH_VALUES_BYTES};
    pthread_t threads[THREADS];

    prudence_hash_draw_secret(&secret);
    if (getenv("RACE"))
        race = getenv("RACE");
    table = prudence_hash_create("test", NULL);
    ids = prudence_id_table_create("test", NULL);
    map = prudence_map_create("test", NULL);
    strings = prudence_map_values_create("test", &of_strings);
    lockfree = prudence_lockfree_hash_create("test", &of_half);
    routes4 = prudence_routes_create("test", NULL);
    routes6 = prudence_routes_create("test", &ipv6);
    values = prudence_hash_values_create("test", &of_bytes);
    if (!table || !ids || !map || !strings || !lockfree || !routes4 || !routes6 || !values)
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
