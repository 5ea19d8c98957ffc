/* SPDX-License-Identifier: MIT */
/* Common parts of the tests of renaming: names with a key that lead to a number. */
#ifndef TESTS_SUPPORT_NAME_TEST_H
#define TESTS_SUPPORT_NAME_TEST_H

#include <prudence/hash_rename.h>

#include "support/hash_test.h"

struct named {
    struct prudence_hash_name name;
    uint64_t key;
    unsigned object;
};

static bool entry_has_key(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct named, name.node)->key == *(const uint64_t *)key;
}

static struct named *entry_of(struct prudence_hash_name *name)
{
    return name ? prudence_hash_entry(name, struct named, name) : NULL;
}

HASH_TEST_UNUSED static struct named *find(const struct prudence_hash *table, uint64_t hash,
                                           uint64_t key)
{
    return entry_of(prudence_hash_lookup_name(table, hash, entry_has_key, &key));
}

HASH_TEST_UNUSED static struct named *entry_set(struct named *entry, uint64_t key, unsigned object)
{
    entry->key = key;
    entry->object = object;
    prudence_hash_name_init(&entry->name);
    return entry;
}

#endif /* TESTS_SUPPORT_NAME_TEST_H */
