/* SPDX-License-Identifier: MIT */
/*
 * Misuse of nodes of tables, one cell a process. Prints the cells without arguments. With the names
 * of a table and of a misuse prints what the misuse led to: "refused" (an error and the table as it
 * was), "harmless" (the table as it was or as it should be) or "lost" (the table has not what it
 * should have). test_table_misuse.py judges that, and how the process ended.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    {"hash", make_hash, hash_add, hash_put, hash_replace, hash_has},
    {"lockfree_hash", make_lockfree, lockfree_add, lockfree_put, lockfree_replace, lockfree_has},
    {"map", make_map, map_add, map_put, map_replace, map_has},
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
    {"added twice", add_twice},
    {"added to another table", add_to_another},
    {"put in its own place", put_itself},
    {"replaced by itself", replace_itself},
};

static int run(const struct table *kind, const struct misuse *misuse)
{
    const char *result;
    int error;

    for (unsigned i = 0; i < 2; i++)
        tables[i] = kind->create();
    prudence_read_lock();
    for (unsigned i = 0; i < NODES; i++)
        kind->add(tables[0], &nodes[i]);
    error = misuse->commit(kind);
    result = error == EINVAL || error == EEXIST ? "refused" : "harmless";
    for (unsigned i = 0; i < NODES; i++)
        if (!kind->has(tables[0], i))
            result = "lost";
    printf("%s\n", result);
    fflush(stdout);
    _Exit(0); /* tables with lost nodes cannot be destroyed */
}

int main(int count, char **arguments)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (size_t j = 0; j < sizeof misuses / sizeof misuses[0]; j++) {
            if (count == 1)
                printf("%s\t%s\n", kinds[i].name, misuses[j].name);
            else if (count == 3 && !strcmp(arguments[1], kinds[i].name) &&
                     !strcmp(arguments[2], misuses[j].name))
                run(&kinds[i], &misuses[j]);
        }
    }
    return count != 1;
}
