/* SPDX-License-Identifier: MIT */
/*
 * Misuse of nodes of tables. Each case prints the result: an error (the table has not changed),
 * "harmless" (the table is as before, or as intended) or "loses objects".
 */
#include "calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <prudence/hash.h>
#include <prudence/lockfree_hash.h>
#include <prudence/map.h>
#include <prudence/rcu.h>

/* The node of each kind of table comes first. */
union node {
    struct prudence_hash_node hash;
    struct prudence_map_node map;
};

#define NODES 3 /* in the first table; numbers are keys, and all have one hash */

static union node nodes[NODES];
static void *tables[2];

static bool is_node(const struct prudence_hash_node *node, const void *key)
{
    return node == key;
}

struct table {
    const char *name;
    void *(*create)(void);
    int (*add)(void *table, union node *node); /* unless the key is there */
    int (*put)(void *table, union node *node);
    int (*replace)(void *table, union node *old, union node *fresh);
    bool (*has)(const void *table, unsigned key);
};

static void *make_hash(void)
{
    return prudence_hash_create("misused", NULL);
}

static int hash_add(void *table, union node *node)
{
    return prudence_hash_add_duplicate(table, 1, &node->hash);
}

static int hash_put(void *table, union node *node)
{
    return prudence_hash_put(table, 1, is_node, node, &node->hash, NULL);
}

static int hash_replace(void *table, union node *old, union node *fresh)
{
    return prudence_hash_replace(table, &old->hash, &fresh->hash);
}

static bool hash_has(const void *table, unsigned key)
{
    return prudence_hash_lookup(table, 1, is_node, &nodes[key]);
}

static void *make_lockfree(void)
{
    return prudence_lockfree_hash_create("misused", NULL);
}

static int lockfree_add(void *table, union node *node)
{
    return prudence_lockfree_hash_add_duplicate(table, 1, &node->hash);
}

static int lockfree_put(void *table, union node *node)
{
    return prudence_lockfree_hash_put(table, 1, is_node, node, &node->hash, NULL);
}

static int lockfree_replace(void *table, union node *old, union node *fresh)
{
    return prudence_lockfree_hash_replace(table, &old->hash, &fresh->hash);
}

static bool lockfree_has(const void *table, unsigned key)
{
    return prudence_lockfree_hash_lookup(table, 1, is_node, &nodes[key]);
}

static void *make_map(void)
{
    for (unsigned i = 0; i < NODES; i++)
        nodes[i].map.key = i;
    return prudence_map_create("misused", NULL);
}

static int map_add(void *map, union node *node)
{
    return prudence_map_add(map, &node->map, NULL);
}

static int map_put(void *map, union node *node)
{
    return prudence_map_put(map, &node->map, NULL);
}

static int map_replace(void *map, union node *old, union node *fresh)
{
    return prudence_map_replace(map, &old->map, &fresh->map);
}

static bool map_has(const void *map, unsigned key)
{
    return prudence_map_lookup(map, key) == &nodes[key].map;
}

static const struct table kinds[] = {
    {"hash table", make_hash, hash_add, hash_put, hash_replace, hash_has},
    {"hash table without locks", make_lockfree, lockfree_add, lockfree_put, lockfree_replace,
     lockfree_has},
    {"ordered map", make_map, map_add, map_put, map_replace, map_has},
};

static int add_twice(const struct table *kind)
{
    return kind->add(tables[0], &nodes[2]);
}

static int add_to_another(const struct table *kind)
{
    return kind->add(tables[1], &nodes[2]);
}

static int put_itself(const struct table *kind)
{
    return kind->put(tables[0], &nodes[2]);
}

static int replace_itself(const struct table *kind)
{
    return kind->replace(tables[0], &nodes[2], &nodes[2]);
}

static const struct misuse {
    const char *name;
    int (*commit)(const struct table *kind);
} misuses[] = {
    {"a node added twice", add_twice},
    {"a node added to another table as well", add_to_another},
    {"a node put in its own place", put_itself},
    {"a node replaced by itself", replace_itself},
};

#define MISUSES (sizeof misuses / sizeof misuses[0])

bool node_case(size_t number, const char **table, const char **how)
{
    if (number >= MISUSES * sizeof kinds / sizeof kinds[0])
        return false;
    *table = kinds[number / MISUSES].name;
    *how = misuses[number % MISUSES].name;
    return true;
}

void node_misuse(size_t number)
{
    const struct table *kind = &kinds[number / MISUSES];
    const char *result;
    int error;

    for (unsigned i = 0; i < 2; i++)
        tables[i] = kind->create();
    prudence_read_lock();
    for (unsigned i = 0; i < NODES; i++)
        kind->add(tables[0], &nodes[i]);
    error = misuses[number % MISUSES].commit(kind);
    result = error == EINVAL ? "EINVAL" : error == EEXIST ? "EEXIST" : "harmless";
    for (unsigned i = 0; i < NODES; i++)
        if (!kind->has(tables[0], i))
            result = "loses objects";
    printf("%s\n", result);
    fflush(stdout);
    _Exit(0); /* tables with lost nodes cannot be destroyed */
}
