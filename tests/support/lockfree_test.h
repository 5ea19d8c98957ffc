/* SPDX-License-Identifier: MIT */
/* Common parts of the tests of the lock-free hash table. */
#ifndef TESTS_SUPPORT_LOCKFREE_TEST_H
#define TESTS_SUPPORT_LOCKFREE_TEST_H

#include <prudence/lockfree_hash.h>

#include "support/hash_test.h"

HASH_TEST_UNUSED static struct prudence_lockfree_hash *lockfree_of(uint64_t buckets)
{
    const struct prudence_lockfree_hash_attr attr = {.size = sizeof attr, .buckets = buckets};

    return prudence_lockfree_hash_create("test", &attr);
}

HASH_TEST_UNUSED static struct item *find(const struct prudence_lockfree_hash *table, uint64_t hash,
                                          uint64_t key)
{
    return item_of(prudence_lockfree_hash_lookup(table, hash, item_has_key, &key));
}

HASH_TEST_UNUSED static struct prudence_lockfree_hash_stats
lockfree_stats(const struct prudence_lockfree_hash *table)
{
    struct prudence_lockfree_hash_stats stats;

    assert_int_equal(prudence_lockfree_hash_stats(table, &stats), 0);
    return stats;
}

HASH_TEST_UNUSED static void empty_and_destroy(struct prudence_lockfree_hash *table)
{
    struct prudence_lockfree_hash_walk walk;
    struct prudence_hash_node *node;

    prudence_lockfree_hash_for_each(&walk, table, node)
        assert_int_equal(prudence_lockfree_hash_remove(table, node), 0);
    assert_int_equal(prudence_lockfree_hash_destroy(table, NULL, NULL), 0);
}

#endif /* TESTS_SUPPORT_LOCKFREE_TEST_H */
