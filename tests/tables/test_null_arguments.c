/* SPDX-License-Identifier: MIT */
/* Updates of all tables refuse NULL instead of a table or a node, and a table that is NULL has no
 * objects. (Functions of readers, which are inlined, need a table.) */
#include <errno.h>

#include <prudence/hash.h>
#include <prudence/hash_rename.h>
#include <prudence/hash_values.h>
#include <prudence/id_table.h>
#include <prudence/lockfree_hash.h>
#include <prudence/log.h>
#include <prudence/map.h>
#include <prudence/map_values.h>
#include <prudence/rcu.h>
#include <prudence/routes.h>

#include "support/suite.h"

static int object;

static bool any(const struct prudence_hash_node *node, const void *key)
{
    (void)node, (void)key;
    return true;
}

static void hash_updates(struct prudence_hash *table, struct prudence_hash_node *node)
{
    struct prudence_hash_node good, *found = &good;

    assert_int_equal(prudence_hash_add(table, 1, any, NULL, node, &found), EINVAL);
    assert_null(found);
    found = &good;
    assert_int_equal(prudence_hash_put(table, 1, any, NULL, node, &found), EINVAL);
    assert_null(found);
    assert_int_equal(prudence_hash_add_duplicate(table, 1, node), EINVAL);
    assert_int_equal(prudence_hash_replace(table, node, &good), EINVAL);
    assert_int_equal(prudence_hash_replace(table, &good, table ? NULL : node), EINVAL);
    assert_int_equal(prudence_hash_remove(table, node), EINVAL);
}

TEST(hash)
{
    struct prudence_hash *table = prudence_hash_create("null", NULL);
    struct prudence_hash_node node;

    prudence_read_lock();
    hash_updates(NULL, &node);
    hash_updates(table, NULL);
    prudence_read_unlock();
    assert_int_equal(prudence_hash_count(NULL), 0);
    assert_int_equal(prudence_hash_resize(NULL, 64), EINVAL);
    assert_int_equal(prudence_hash_destroy(NULL, NULL, NULL), EINVAL);
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
}

TEST(renames)
{
    struct prudence_hash *table = prudence_hash_create("null", NULL);
    struct prudence_hash_name names[4], *const a = &names[0], *const b = &names[1];

    assert_int_equal(prudence_hash_rename(NULL, a, table, 1, any, NULL, b), EINVAL);
    assert_int_equal(prudence_hash_rename(table, NULL, table, 1, any, NULL, b), EINVAL);
    assert_int_equal(prudence_hash_rename(table, a, NULL, 1, any, NULL, b), EINVAL);
    assert_int_equal(prudence_hash_rename(table, a, table, 1, any, NULL, NULL), EINVAL);
    assert_int_equal(prudence_hash_exchange(table, NULL, &names[2], table, b, &names[3]), EINVAL);
    assert_int_equal(prudence_hash_exchange(table, a, &names[2], NULL, b, &names[3]), EINVAL);
    assert_int_equal(prudence_hash_exchange(table, a, &names[2], table, b, NULL), EINVAL);
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
}

static void lockfree_updates(struct prudence_lockfree_hash *table, struct prudence_hash_node *node)
{
    struct prudence_hash_node good, *found = &good;

    assert_int_equal(prudence_lockfree_hash_add(table, 1, any, NULL, node, &found), EINVAL);
    assert_null(found);
    found = &good;
    assert_int_equal(prudence_lockfree_hash_put(table, 1, any, NULL, node, &found), EINVAL);
    assert_null(found);
    assert_int_equal(prudence_lockfree_hash_add_duplicate(table, 1, node), EINVAL);
    assert_int_equal(prudence_lockfree_hash_replace(table, node, &good), EINVAL);
    assert_int_equal(prudence_lockfree_hash_remove(table, node), EINVAL);
}

TEST(lockfree_hash)
{
    struct prudence_lockfree_hash *table = prudence_lockfree_hash_create("null", NULL);
    struct prudence_hash_node node;

    prudence_read_lock();
    lockfree_updates(NULL, &node);
    lockfree_updates(table, NULL);
    prudence_read_unlock();
    assert_int_equal(prudence_lockfree_hash_destroy(table, NULL, NULL), 0);
}

TEST(identifiers)
{
    struct prudence_id_table *table = prudence_id_table_create("null", NULL);
    void *old = &object;
    uint32_t id;

    assert_int_equal(prudence_id_table_add(NULL, &object, &id), EINVAL);
    assert_int_equal(prudence_id_table_add(table, NULL, &id), EINVAL);
    assert_int_equal(prudence_id_table_add(table, &object, NULL), EINVAL);
    assert_int_equal(prudence_id_table_replace(NULL, 0, &object, &old), EINVAL);
    assert_null(old);
    old = &object;
    assert_int_equal(prudence_id_table_erase(NULL, 0, &old), EINVAL);
    assert_null(old);
    assert_int_equal(prudence_id_table_count(NULL), 0);
    assert_int_equal(prudence_id_table_destroy(table, NULL, NULL), 0);
}

TEST(values)
{
    void *old;

    assert_int_equal(prudence_hash_values_put(NULL, 1, &object, &old), EINVAL);
    assert_int_equal(prudence_hash_values_erase(NULL, 1, &old), EINVAL);
    assert_int_equal(prudence_hash_values_count(NULL), 0);
    assert_int_equal(prudence_map_values_put(NULL, 1, &object, &old), EINVAL);
    assert_int_equal(prudence_map_values_replace(NULL, 1, &old, &object), EINVAL);
    assert_int_equal(prudence_map_values_erase(NULL, 1, &old), EINVAL);
    assert_int_equal(prudence_map_values_count(NULL), 0);
}

TEST(map)
{
    struct prudence_map *map = prudence_map_create("null", NULL);
    struct prudence_map_node node = {.key = 1}, *old;

    assert_int_equal(prudence_map_add(NULL, &node, &old), EINVAL);
    assert_int_equal(prudence_map_put(map, NULL, &old), EINVAL);
    assert_int_equal(prudence_map_remove(NULL, &node), EINVAL);
    assert_int_equal(prudence_map_erase(NULL, 1, &old), EINVAL);
    assert_int_equal(prudence_map_count(NULL), 0);
    assert_int_equal(prudence_map_destroy(map, NULL, NULL), 0);
}

TEST(routes)
{
    struct prudence_routes *table = prudence_routes_create("null", NULL);
    const struct prudence_routes_prefix prefix = {.address = {10}, .length = 8};
    uintptr_t old = 1;

    assert_int_equal(prudence_routes_add(NULL, &prefix, 5, &old), EINVAL);
    assert_int_equal(old, 0);
    assert_int_equal(prudence_routes_add(table, NULL, 5, NULL), EINVAL);
    assert_int_equal(prudence_routes_replace(NULL, &prefix, 5, NULL), EINVAL);
    assert_int_equal(prudence_routes_erase(NULL, &prefix, NULL), EINVAL);
    assert_int_equal(prudence_routes_get(NULL, &prefix), 0);
    assert_int_equal(prudence_routes_count(NULL), 0);
    assert_int_equal(prudence_routes_destroy(table), 0);
}

TEST(logs)
{
    assert_null(prudence_log_reserve(NULL, 8));
    assert_int_equal(prudence_log_dropped(NULL), 0);
}

SUITE()
