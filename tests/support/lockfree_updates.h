/* SPDX-License-Identifier: MIT */
/* One chain of a lock-free hash table, and updates of every kind that conflict there. */
#ifndef TESTS_SUPPORT_LOCKFREE_UPDATES_H
#define TESTS_SUPPORT_LOCKFREE_UPDATES_H

#include "support/lockfree_test.h"
#include "support/updates.h"

#define CHAIN 5 /* initial objects, with keys 0 (the last) to 4 (the first) */

static struct item items[32];
static struct prudence_lockfree_hash *table;

HASH_TEST_UNUSED static void begin_chain(void)
{
    memset(items, 0, sizeof items);
    table = lockfree_of(2);
    for (unsigned i = 0; i < CHAIN; i++) {
        items[i].key = i;
        prudence_lockfree_hash_add_duplicate(table, 0, &items[i].node);
    }
}

/* Result of an update. `gone` is the number of the object removed or replaced, or -1. */
struct update_result {
    int result, gone;
};

static struct item *fresh_item(unsigned update, uint64_t key)
{
    struct item *item = &items[CHAIN + update];

    item->key = key;
    return item;
}

static struct update_result found(const struct prudence_hash_node *node, bool takes)
{
    int number = node ? (int)(prudence_hash_entry(node, const struct item, node) - items) : -1;

    return (struct update_result){.result = number, .gone = takes ? number : -1};
}

static struct update_result remove_number(int number)
{
    int error = prudence_lockfree_hash_remove(table, &items[number].node);

    return (struct update_result){.result = error, .gone = error ? -1 : number};
}

static struct update_result replace_number(int number, unsigned update)
{
    int error = prudence_lockfree_hash_replace(table, &items[number].node,
                                               &fresh_item(update, items[number].key)->node);

    return (struct update_result){.result = error, .gone = error ? -1 : number};
}

static struct update_result add(uint64_t key, unsigned update)
{
    return found(lockfree_add_found(table, 0, item_has_key, &key, &fresh_item(update, key)->node),
                 false);
}

static struct update_result put(uint64_t key, unsigned update)
{
    return found(lockfree_put_found(table, 0, item_has_key, &key, &fresh_item(update, key)->node),
                 true);
}

#define UPDATES 12

HASH_TEST_UNUSED static struct update_result run_update(unsigned update)
{
    switch (update) {
    case 0:
        prudence_lockfree_hash_add_duplicate(table, 0, &fresh_item(0, 10)->node);
        return (struct update_result){.gone = -1};
    case 1:
    case 2:
        return add(10, update); /* absent key: 1 and 2 also compete */
    case 3:
        return add(2, update);
    case 4:
        return put(10, update);
    case 5:
        return put(2, update);
    case 6:
        return replace_number(2, update);
    case 7:
        return replace_number(4, update);
    case 8:
        return remove_number(1);
    case 9:
        return remove_number(2);
    case 10:
        return remove_number(3);
    default:
        return remove_number(4);
    }
}

#endif /* TESTS_SUPPORT_LOCKFREE_UPDATES_H */
