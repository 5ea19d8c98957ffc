/* SPDX-License-Identifier: MIT */
/*
 * An update that is given one object as the old and as the new one is refused. If the update
 * succeeded, the caller would own the object, and defer it, while readers find it in the table.
 *
 * ctest: not-with sanitizers (UBSan stops at the store to NULL before the process faults)
 */
#include <errno.h>
#include <signal.h>

#include <prudence/hash.h>
#include <prudence/hash_rename.h>
#include <prudence/hash_values.h>
#include <prudence/id_table.h>
#include <prudence/lockfree_hash.h>
#include <prudence/map.h>
#include <prudence/map_values.h>
#include <prudence/rcu.h>
#include <prudence/rcuhlist.h>
#include <prudence/rculist.h>
#include <prudence/routes.h>
#include <prudence/swap.h>

#include "support/gp_child.h"
#include "support/suite.h"

static int there, other;

static bool any(const struct prudence_hash_node *node, const void *key)
{
    (void)node, (void)key;
    return true;
}

TEST(hash)
{
    struct prudence_hash *table = prudence_hash_create("own", NULL);
    struct prudence_hash_node node, *old = &node;

    prudence_read_lock();
    assert_int_equal(prudence_hash_put(table, 1, any, NULL, &node, &old), 0);
    assert_null(old);
    old = &node;
    assert_int_equal(prudence_hash_put(table, 1, any, NULL, &node, &old), EINVAL);
    assert_null(old);
    assert_int_equal(prudence_hash_put(table, 1, any, NULL, &node, NULL), EINVAL);
    assert_int_equal(prudence_hash_replace(table, &node, &node), EINVAL);
    assert_ptr_equal(prudence_hash_lookup(table, 1, any, NULL), &node);
    assert_int_equal(prudence_hash_count(table), 1);
    assert_int_equal(prudence_hash_remove(table, &node), 0);
    assert_int_equal(prudence_hash_count(table), 0);
    prudence_read_unlock();
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
}

/* The name that is in the way is the fresh one. */
TEST(renames)
{
    struct prudence_hash *table = prudence_hash_create("own", NULL);
    struct prudence_hash_name names[2], *old = &names[0];

    prudence_hash_name_init(&names[0]);
    prudence_hash_name_init(&names[1]);
    prudence_read_lock();
    prudence_hash_add_duplicate(table, 1, &names[0].node);
    prudence_hash_add_duplicate(table, 2, &names[1].node);
    assert_int_equal(
        prudence_hash_rename_replace(table, &names[0], table, 2, any, NULL, &names[1], &old),
        EINVAL);
    assert_null(old);
    assert_ptr_equal(prudence_hash_lookup_name(table, 1, any, NULL), &names[0]);
    assert_ptr_equal(prudence_hash_lookup_name(table, 2, any, NULL), &names[1]);
    assert_int_equal(prudence_hash_remove(table, &names[0].node), 0);
    assert_int_equal(prudence_hash_remove(table, &names[1].node), 0);
    prudence_read_unlock();
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
}

TEST(lockfree_hash)
{
    struct prudence_lockfree_hash *table = prudence_lockfree_hash_create("own", NULL);
    struct prudence_hash_node node, *old = &node;

    prudence_read_lock();
    assert_int_equal(prudence_lockfree_hash_put(table, 1, any, NULL, &node, &old), 0);
    assert_null(old);
    old = &node;
    assert_int_equal(prudence_lockfree_hash_put(table, 1, any, NULL, &node, &old), EINVAL);
    assert_null(old);
    assert_int_equal(prudence_lockfree_hash_replace(table, &node, &node), EINVAL);
    assert_ptr_equal(prudence_lockfree_hash_lookup(table, 1, any, NULL), &node);
    assert_int_equal(prudence_lockfree_hash_remove(table, &node), 0);
    prudence_read_unlock();
    assert_int_equal(prudence_lockfree_hash_destroy(table, NULL, NULL), 0);
}

static void map_of_kind(unsigned flags)
{
    const struct prudence_map_attr attr = {.size = sizeof attr, .flags = flags};
    struct prudence_map *map = prudence_map_create("own", &attr);
    struct prudence_map_bytes object = {.node.key = 3}, *const node = &object;
    struct prudence_map_node *old = &node->node;

    if (flags)
        prudence_map_set_bytes(node, "name", 4);
    assert_int_equal(prudence_map_put(map, &node->node, &old), 0);
    assert_null(old);
    old = &node->node;
    assert_int_equal(prudence_map_put(map, &node->node, &old), EINVAL);
    assert_null(old);
    assert_int_equal(prudence_map_put(map, &node->node, NULL), EINVAL);
    assert_int_equal(prudence_map_replace(map, &node->node, &node->node), EINVAL);
    assert_int_equal(prudence_map_add(map, &node->node, &old), EEXIST);
    assert_ptr_equal(old, &node->node);
    assert_int_equal(prudence_map_count(map), 1);
    prudence_read_lock();
    assert_int_equal(prudence_map_remove(map, &node->node), 0);
    prudence_read_unlock();
    assert_int_equal(prudence_map_count(map), 0);
    assert_int_equal(prudence_map_destroy(map, NULL, NULL), 0);
}

TEST(map)
{
    map_of_kind(0);
    map_of_kind(PRUDENCE_MAP_BYTES);
}

TEST(identifiers)
{
    struct prudence_id_table *table = prudence_id_table_create("own", NULL);
    void *old = &other;
    uint32_t id;

    assert_int_equal(prudence_id_table_add(table, &there, &id), 0);
    assert_int_equal(prudence_id_table_replace(table, id, &there, &old), EINVAL);
    assert_null(old);
    assert_int_equal(prudence_id_table_replace(table, id, &other, &old), 0);
    assert_ptr_equal(old, &there);
    assert_int_equal(prudence_id_table_erase(table, id, &old), 0);
    assert_ptr_equal(old, &other);
    assert_int_equal(prudence_id_table_destroy(table, NULL, NULL), 0);
}

/* Several keys may have one value, so put stores the value that the key has. Only `replace`, which
 * names both, is refused. */
TEST(values)
{
    struct prudence_hash_values *hash = prudence_hash_values_create("own", NULL);
    struct prudence_map_values *map = prudence_map_values_create("own", NULL);
    void *old;

    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(prudence_hash_values_put(hash, 1, &there, &old), 0);
        assert_ptr_equal(old, i ? &there : NULL);
        assert_int_equal(prudence_map_values_put(map, 1, &there, &old), 0);
        assert_ptr_equal(old, i ? &there : NULL);
    }
    assert_int_equal(prudence_hash_values_replace(hash, 1, &there, &there), EINVAL);
    assert_int_equal(prudence_map_values_replace(map, 1, &there, &there), EINVAL);
    assert_int_equal(prudence_hash_values_replace(hash, 1, &there, &other), 0);
    assert_int_equal(prudence_map_values_replace(map, 1, &there, &other), 0);
    assert_int_equal(prudence_hash_values_erase(hash, 1, &old), 0);
    assert_int_equal(prudence_map_values_erase(map, 1, &old), 0);
    assert_int_equal(prudence_hash_values_destroy(hash, NULL, NULL), 0);
    assert_int_equal(prudence_map_values_destroy(map, NULL, NULL), 0);
}

TEST(routes)
{
    struct prudence_routes *table = prudence_routes_create("own", NULL);
    const struct prudence_routes_prefix prefix = {.address = {10}, .length = 8};
    uintptr_t old = 0;

    assert_int_equal(prudence_routes_add(table, &prefix, 5, NULL), 0);
    assert_int_equal(prudence_routes_replace(table, &prefix, 5, &old), 0);
    assert_int_equal(old, 5);
    assert_int_equal(prudence_routes_destroy(table), 0);
}

static int transfers;

static int count_transfer(void *old, void *fresh, void *context)
{
    (void)old, (void)fresh, (void)context;
    transfers++;
    return 0;
}

TEST(swap)
{
    struct prudence_swap handle;
    void *old = &other;

    prudence_swap_init(&handle, &there);
    assert_null(prudence_swap_exchange(&handle, &there));
    assert_int_equal(prudence_swap_transfer(&handle, &there, &old, count_transfer, NULL, NULL),
                     EINVAL);
    assert_null(old);
    assert_int_equal(transfers, 0);
    assert_ptr_equal(prudence_swap_get(&handle), &there);
    assert_int_equal(prudence_swap_transfer(&handle, &other, &old, count_transfer, NULL, NULL), 0);
    assert_ptr_equal(old, &there);
}

static int replaces_an_element(void *unused)
{
    struct prudence_list head, element;

    (void)unused;
    prudence_list_init(&head);
    prudence_list_add_rcu(&element, &head);
    prudence_list_replace_rcu(&element, &element);
    return 0;
}

static int replaces_a_node(void *unused)
{
    struct prudence_hlist_head head = PRUDENCE_HLIST_HEAD_INIT;
    struct prudence_hlist_node node;

    (void)unused;
    prudence_hlist_add_head_rcu(&node, &head);
    prudence_hlist_replace_rcu(&node, &node);
    return 0;
}

static void faults(int (*body)(void *))
{
    struct child_result result;

    child_run(body, NULL, &result);
    assert_true(WIFSIGNALED(result.status));
    assert_int_equal(WTERMSIG(result.status), SIGSEGV);
}

TEST(lists)
{
    faults(replaces_an_element);
    faults(replaces_a_node);
}

SUITE()
