/* SPDX-License-Identifier: MIT */
/*
 * The hash table without locks, beyond the contract of all tables (test_contract.c): its memory,
 * and readers at an object that is removed.
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

static struct item *found_from(const struct item *at, uint64_t key)
{
    return item_of(prudence_lockfree_hash_search_((uintptr_t)&at->node, 0, item_has_key, &key));
}

/* A reader at an object finds the objects after it, whatever is removed and replaced around it,
 * even from objects that are removed themselves. */
TEST(a_reader_at_an_object_that_goes_finds_the_rest)
{
    fill(10);
    for (unsigned i = 9; i > 1; i--) {
        assert_int_equal(prudence_lockfree_hash_remove(table, &items[i].node), 0);
        for (unsigned j = 9; j >= i; j--) {
            assert_ptr_equal(found_from(&items[j], 0), &items[0]);
            assert_ptr_equal(found_from(&items[j], i - 1), &items[i - 1]);
            assert_null(found_from(&items[j], i));
        }
    }
    empty_and_destroy(table);
}

/* A replacement is linked after the old object, so a reader at the old one finds the latest. */
TEST(a_reader_at_a_replaced_object_finds_the_last)
{
    fill(3);
    for (unsigned i = 10; i < 20; i++) {
        items[i].key = 1;
        assert_int_equal(
            prudence_lockfree_hash_replace(table, &items[i == 10 ? 1 : i - 1].node, &items[i].node),
            0);
        assert_ptr_equal(found_from(&items[1], 1), &items[i]);
        assert_ptr_equal(found_from(&items[1], 0), &items[0]);
    }
    empty_and_destroy(table);
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
