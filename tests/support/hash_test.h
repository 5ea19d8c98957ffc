/* SPDX-License-Identifier: MIT */
/* Common parts of the hash table's tests: objects with keys, hash functions, and checks of whole
 * tables. */
#ifndef TESTS_SUPPORT_HASH_TEST_H
#define TESTS_SUPPORT_HASH_TEST_H

#include "support/hash_invariants.h"

#define HASH_TEST_UNUSED __attribute__((unused))

struct item {
    struct prudence_hash_node node;
    uint64_t key;
    unsigned visits;
    bool in; /* whether the test expects the item in the table */
};

static bool item_has_key(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct item, node)->key == *(const uint64_t *)key;
}

static struct item *item_of(struct prudence_hash_node *node)
{
    return node ? prudence_hash_entry(node, struct item, node) : NULL;
}

/* ----------------------------------------------------------------------------- hash functions */

static uint64_t hash_all_one(uint64_t key)
{
    (void)key;
    return 42;
}

static uint64_t hash_same(uint64_t key)
{
    return key;
}

/* Returns the hash that the table's multiplication turns into `spread`, so that tests choose the
 * buckets. */
static uint64_t hash_for(uint64_t spread)
{
    uint64_t factor = prudence_hash_spread_(1), inverse = factor;

    for (unsigned i = 0; i < 6; i++) /* each step doubles the number of correct bits */
        inverse *= 2 - factor * inverse;
    return spread * inverse;
}

/* Puts all keys into one bucket, up to 4096 buckets. */
static uint64_t hash_low_bits(uint64_t key)
{
    return hash_for(key << 40);
}

static uint64_t hash_few(uint64_t key)
{
    return prudence_hash_mix(key % 7);
}

static uint64_t hash_mixed(uint64_t key)
{
    return prudence_hash_mix(key);
}

HASH_TEST_UNUSED static uint64_t (*const hash_functions[])(uint64_t) = {
    hash_mixed, hash_same, hash_low_bits, hash_few, hash_all_one};
#define HASH_FUNCTIONS (sizeof hash_functions / sizeof hash_functions[0])

/* --------------------------------------------------------------------------------- the table */

HASH_TEST_UNUSED static struct prudence_hash *
table_of_domain(struct prudence_domain *domain, uint64_t buckets, uint64_t most, unsigned flags)
{
    struct prudence_hash_attr attr = {.size = sizeof attr,
                                      .buckets = buckets,
                                      .buckets_most = most,
                                      .flags = flags,
                                      .domain = domain};
    struct prudence_hash *table = prudence_hash_create("test", &attr);

    assert_non_null(table);
    return table;
}

HASH_TEST_UNUSED static struct item *look_up(struct prudence_hash *table, uint64_t hash,
                                             uint64_t key)
{
    return item_of(prudence_hash_lookup(table, hash, item_has_key, &key));
}

HASH_TEST_UNUSED static void remove_all(struct prudence_hash *table)
{
    struct prudence_hash_walk walk;
    struct prudence_hash_node *node;

    prudence_hash_for_each(&walk, table, node)
        assert_int_equal(prudence_hash_remove(table, node), 0);
    assert_int_equal(prudence_hash_count(table), 0);
}

HASH_TEST_UNUSED static struct prudence_hash_stats hash_stats_of(struct prudence_hash *table)
{
    struct prudence_hash_stats stats;

    assert_int_equal(prudence_hash_stats(table, &stats), 0);
    return stats;
}

#endif /* TESTS_SUPPORT_HASH_TEST_H */
