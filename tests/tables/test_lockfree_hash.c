/* SPDX-License-Identifier: MIT */
/*
 * The hash table without locks, beyond the contract of all tables (test_contract.c): its memory,
 * and walks whose objects are replaced.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/lockfree_test.h"

static struct item items[40];
static struct prudence_lockfree_hash *table;

TEST(there_is_no_memory_for_that_many_buckets)
{
    errno = 0;
    assert_null(lockfree_of(UINT64_C(1) << 40)); /* 8 TiB */
    assert_int_equal(errno, ENOMEM);
}

TEST(statistics_add_up)
{
    struct prudence_lockfree_hash_stats stats;

    table = lockfree_of(1000);
    prudence_lockfree_hash_add_duplicate(table, hash_mixed(3), &items[0].node);
    stats = lockfree_stats(table);
    assert_int_equal(stats.objects, 1);
    assert_int_equal(stats.removed, 0);
    assert_int_equal(stats.longest, 1);
    assert_int_equal(stats.buckets, 1024);
    assert_int_equal(stats.bytes_live, 64 + 1024 * 8);
    empty_and_destroy(table);
}

/* ---------------------------------------------------------------------------- readers that stay */

static void fill(unsigned objects)
{
    table = lockfree_of(2);
    for (unsigned i = 0; i < objects; i++) {
        items[i].key = i;
        prudence_lockfree_hash_add_duplicate(table, 0, &items[i].node);
    }
}

/* The body of a walk replaces and removes the walk's objects: each key appears once. */
TEST(a_walk_finds_one_of_those_that_replace_each_other)
{
    struct prudence_lockfree_hash_walk walk;
    struct prudence_hash_node *node;
    unsigned seen[10] = {0};

    fill(10);
    prudence_lockfree_hash_for_each(&walk, table, node)
    {
        struct item *item = item_of(node);
        uint64_t key = item->key;

        seen[key]++;
        if (key % 2) {
            items[20 + key].key = key;
            assert_int_equal(prudence_lockfree_hash_replace(table, node, &items[20 + key].node), 0);
        } else if (key) { /* the following key */
            items[30 + key].key = key - 1;
            assert_int_equal(
                prudence_lockfree_hash_replace(table, &items[key - 1].node, &items[30 + key].node),
                0);
        }
    }
    for (unsigned key = 0; key < 10; key++)
        assert_int_equal(seen[key], 1);
    empty_and_destroy(table);
}

SUITE()
