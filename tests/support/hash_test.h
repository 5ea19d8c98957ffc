/* SPDX-License-Identifier: MIT */
/* Common parts of the hash table's tests: objects with keys, hash functions, and checks of whole
 * tables. */
#ifndef TESTS_SUPPORT_HASH_TEST_H
#define TESTS_SUPPORT_HASH_TEST_H

#include "support/slab_test.h"

#include <prudence/hash.h>

#include "tables/hash.h"

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

/* Ends enough grace periods of the manual domain to make all deferred objects safe and merge
 * them. */
HASH_TEST_UNUSED static void all_readers_leave(struct prudence_domain *domain)
{
    for (unsigned i = 0; i < 4; i++) {
        prudence_trim();
        prudence_manual_advance(domain);
    }
    prudence_trim();
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

/* Returns the word that ends the chain of this bucket. */
HASH_TEST_UNUSED static uintptr_t expected_end(const struct hash_table *table, uint64_t bucket,
                                               unsigned order)
{
    unsigned between = order - (unsigned)__builtin_ctzll(bucket + 1);

    return between > table->order_min ? PRUDENCE_HASH_END(between) : PRUDENCE_HASH_END(0);
}

/* Checks every invariant of tables/hash.h that holds while no thread is inside an update. */
HASH_TEST_UNUSED static void check_chains(struct prudence_hash *public)
{
    struct hash_table *table = hash_of(public);
    uint64_t objects = 0;

    for (unsigned old = 0; old < 2; old++) {
        uintptr_t view = old ? table->from : public->view;

        for (uint64_t i = 0; view && i < view_size(view); i++) {
            uintptr_t link = view_words(view)[i];
            uint64_t last = 0;
            bool first = true;

            if (!link) {
                assert_true(!old && table->from);
                continue;
            }
            assert_false(link & HASH_LOCKED);
            if (link & HASH_MOVED) {
                assert_true(old);
                continue;
            }
            for (; is_node(link); link = prudence_hash_node_(link)->next) {
                uint64_t hash = prudence_hash_node_(link)->hash;

                assert_int_equal(hash_index(hash, view_order(view)), i);
                assert_true(first || hash >= last);
                last = hash;
                first = false;
                objects++;
            }
            assert_int_equal(link, expected_end(table, i, view_order(view)));
            assert_true(is_end_of(link, view_order(view)));
        }
    }
    assert_int_equal(objects, prudence_hash_count(public));
}

#endif /* TESTS_SUPPORT_HASH_TEST_H */
