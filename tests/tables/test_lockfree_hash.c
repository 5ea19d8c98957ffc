/* SPDX-License-Identifier: MIT */
/*
 * The hash table without locks: random operations on it and on a model, an array of the objects in
 * the order of their addition; bad arguments; readers at an object that is removed.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/lockfree_test.h"
#include "support/updates.h"

#define KEYS       40
#define ITEMS      400
#define OPERATIONS 20000

static struct item items[ITEMS];
static struct item *order[ITEMS]; /* objects in the table, the oldest first */
static unsigned count, turn;
static struct prudence_lockfree_hash *table;
static uint64_t (*hash)(uint64_t);
static uint64_t random_state;

static unsigned below(unsigned bound)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)((random_state >> 33) % bound);
}

TEST(there_is_no_memory_for_that_many_buckets)
{
    errno = 0;
    assert_null(lockfree_of(UINT64_C(1) << 40)); /* 8 TiB */
    assert_int_equal(errno, ENOMEM);
}

TEST(only_an_empty_table_is_destroyed)
{
    struct prudence_lockfree_hash_stats stats;

    table = lockfree_of(1000);
    items[0].key = 3;
    prudence_lockfree_hash_add_duplicate(table, hash_mixed(3), &items[0].node);
    assert_int_equal(prudence_lockfree_hash_destroy(table, NULL, NULL), EBUSY);
    assert_ptr_equal(find(table, hash_mixed(3), 3), &items[0]);
    stats = lockfree_stats(table);
    assert_int_equal(stats.objects, 1);
    assert_int_equal(stats.removed, 0);
    assert_int_equal(stats.longest, 1);
    assert_int_equal(stats.buckets, 1024);
    assert_int_equal(stats.bytes_live, 64 + 1024 * 8);
    assert_int_equal(prudence_lockfree_hash_remove(table, &items[0].node), 0);
    assert_int_equal(prudence_lockfree_hash_destroy(table, NULL, NULL), 0);
}

/* ---------------------------------------------------------------------------------------- model */

static unsigned newest(uint64_t key, unsigned before)
{
    while (before > 0 && order[before - 1]->key != key)
        before--;
    return before; /* index + 1; 0: none */
}

static struct item *unused_item(uint64_t key)
{
    do
        turn = (turn + 1) % ITEMS;
    while (items[turn].in);
    items[turn].key = key;
    return &items[turn];
}

static void model_set(unsigned index, struct item *item)
{
    if (index < count)
        order[index]->in = false;
    else
        count++;
    item->in = true;
    order[index] = item;
}

static void model_remove(unsigned index)
{
    order[index]->in = false;
    memmove(&order[index], &order[index + 1], (--count - index) * sizeof order[0]);
}

static void add(uint64_t key)
{
    struct item *item = unused_item(key);
    unsigned at = newest(key, count);
    struct prudence_hash_node *there = NULL;

    switch (below(3)) {
    case 0:
        prudence_lockfree_hash_add_duplicate(table, hash(key), &item->node);
        at = 0;
        break;
    case 1:
        there = lockfree_add_found(table, hash(key), item_has_key, &key, &item->node);
        break;
    default:
        there = lockfree_put_found(table, hash(key), item_has_key, &key, &item->node);
        assert_ptr_equal(item_of(there), at ? order[at - 1] : NULL);
        model_set(at ? at - 1 : count, item);
        return;
    }
    assert_ptr_equal(item_of(there), at ? order[at - 1] : NULL);
    if (!there)
        model_set(count, item);
}

static void replace_or_remove(void)
{
    unsigned at = below(count);
    struct item *old = order[at];

    if (below(2)) {
        struct item *item = unused_item(old->key);

        assert_int_equal(prudence_lockfree_hash_replace(table, &old->node, &item->node), 0);
        model_set(at, item);
    } else {
        assert_int_equal(prudence_lockfree_hash_remove(table, &old->node), 0);
        model_remove(at);
    }
    assert_int_equal(prudence_lockfree_hash_remove(table, &old->node), ENOENT);
    assert_int_equal(prudence_lockfree_hash_replace(table, &old->node, &items[old == items].node),
                     ENOENT);
}

static void check_key(uint64_t key)
{
    unsigned at = newest(key, count);
    struct item *found = find(table, hash(key), key);

    for (;; at = newest(key, at - 1)) {
        assert_ptr_equal(found, at ? order[at - 1] : NULL);
        if (!at)
            break;
        found = item_of(prudence_lockfree_hash_next_duplicate(&found->node, item_has_key, &key));
    }
}

static void check_all(void)
{
    struct prudence_lockfree_hash_walk walk;
    struct prudence_hash_node *node;
    unsigned found = 0;

    for (unsigned i = 0; i < ITEMS; i++)
        items[i].visits = 0;
    prudence_lockfree_hash_for_each(&walk, table, node)
    {
        assert_true(item_of(node)->in);
        assert_int_equal(item_of(node)->visits++, 0);
        found++;
    }
    assert_int_equal(found, count);
    assert_int_equal(lockfree_stats(table).objects, count);
    assert_int_equal(lockfree_stats(table).removed, 0);
}

static void with_hash(uint64_t (*function)(uint64_t), uint64_t seed)
{
    hash = function;
    random_state = seed;
    count = 0;
    memset(items, 0, sizeof items);
    table = lockfree_of(16);
    for (unsigned step = 0; step < OPERATIONS; step++) {
        uint64_t key = below(KEYS);

        if (count < ITEMS / 2 && (!count || below(step % 4000 < 2000 ? 2 : 4) == 0))
            add(key);
        else
            replace_or_remove();
        check_key(key);
        if (step % 503 == 0)
            check_all();
    }
    empty_and_destroy(table);
}

TEST(table_and_model_agree)
{
    for (unsigned f = 0; f < HASH_FUNCTIONS; f++)
        with_hash(hash_functions[f], 4711 + f);
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
