/* SPDX-License-Identifier: MIT */
/*
 * Random operations on a hash table and on a model, an array of the objects in the order of their
 * addition: after each one, the table answers as the model does. Runs with good hashes and with the
 * worst, while the table follows the number of objects by itself, and while it is resized at
 * random.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "support/hash_test.h"
#include "support/updates.h"
#include "support/test_seed.h"

#define KEYS       700
#define ITEMS      3000
#define OPERATIONS 30000

static struct item items[ITEMS];
static struct item *order[ITEMS]; /* objects in the table, the oldest first */
static unsigned count;
static uint64_t (*hash)(uint64_t);
static struct prudence_hash *table;
static uint64_t random_state;

static unsigned below(unsigned bound)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)((random_state >> 33) % bound);
}

/* ---------------------------------------------------------------------------------------- model */

static struct item *unused_item(uint64_t key)
{
    unsigned i = below(ITEMS);

    while (items[i].in)
        i = (i + 1) % ITEMS;
    items[i].key = key;
    return &items[i];
}

static unsigned newest(uint64_t key, unsigned before)
{
    while (before > 0 && order[before - 1]->key != key)
        before--;
    return before; /* index + 1; 0: none */
}

static void model_add(struct item *item)
{
    item->in = true;
    order[count++] = item;
}

static void model_remove(unsigned index)
{
    order[index]->in = false;
    memmove(&order[index], &order[index + 1], (--count - index) * sizeof order[0]);
}

static void model_replace(unsigned index, struct item *item)
{
    order[index]->in = false;
    item->in = true;
    order[index] = item;
}

/* ----------------------------------------------------------------------------------- operations */

static void add(uint64_t key)
{
    struct item *item = unused_item(key);

    prudence_hash_add_duplicate(table, hash(key), &item->node);
    model_add(item);
}

static void add_unique(uint64_t key)
{
    struct item *item = unused_item(key);
    unsigned at = newest(key, count);
    struct item *there = item_of(hash_add_found(table, hash(key), item_has_key, &key, &item->node));

    assert_ptr_equal(there, at ? order[at - 1] : NULL);
    if (!at)
        model_add(item);
}

static void add_replace(uint64_t key)
{
    struct item *item = unused_item(key);
    unsigned at = newest(key, count);
    struct item *old = item_of(hash_put_found(table, hash(key), item_has_key, &key, &item->node));

    assert_ptr_equal(old, at ? order[at - 1] : NULL);
    if (at)
        model_replace(at - 1, item);
    else
        model_add(item);
}

static void replace(void)
{
    unsigned at = below(count);
    struct item *old = order[at], *item = unused_item(old->key);

    assert_int_equal(prudence_hash_replace(table, &old->node, &item->node), 0);
    model_replace(at, item);
    assert_int_equal(prudence_hash_replace(table, &old->node, &items[old == items].node), ENOENT);
    assert_int_equal(prudence_hash_replace(table, &item->node, &item->node), EINVAL);
}

static void remove_one(void)
{
    unsigned at = below(count);
    struct item *item = order[at];

    assert_int_equal(prudence_hash_remove(table, &item->node), 0);
    model_remove(at);
    assert_int_equal(prudence_hash_remove(table, &item->node), ENOENT);
}

static void check_key(uint64_t key)
{
    unsigned at = newest(key, count);
    struct item *found = look_up(table, hash(key), key);

    for (;; at = newest(key, at - 1)) {
        assert_ptr_equal(found, at ? order[at - 1] : NULL);
        if (!at)
            break;
        found = item_of(prudence_hash_next_duplicate(&found->node, item_has_key, &key));
    }
}

static void check_all(void)
{
    struct prudence_hash_walk walk;
    struct prudence_hash_node *node;
    unsigned found = 0;

    for (unsigned i = 0; i < ITEMS; i++)
        items[i].visits = 0;
    prudence_hash_for_each(&walk, table, node)
    {
        assert_true(item_of(node)->in);
        assert_int_equal(item_of(node)->visits++, 0);
        found++;
    }
    assert_int_equal(found, count);
    assert_int_equal(prudence_hash_count(table), count);
    check_chains(table);
}

static void operate(unsigned step, bool resizing)
{
    /* The table grows to many objects and empties again, several times. */
    bool more = step % 6000 < 3500 && count < ITEMS - 10;
    unsigned what = below(100);
    uint64_t key = below(KEYS);

    if (what < (more ? 60u : 15u) && count < ITEMS - 10)
        (what % 3 == 0 ? add : what % 3 == 1 ? add_unique : add_replace)(key);
    else if (what < 70 && count && count < ITEMS - 10)
        replace();
    else if (count)
        remove_one();
    check_key(key);
    if (resizing && step % 500 == 0)
        assert_int_equal(prudence_hash_resize(table, below(5000)), 0);
    if (step % 997 == 0)
        check_all();
}

static void all_functions(bool resizing)
{
    for (unsigned f = 0; f < HASH_FUNCTIONS; f++) {
        struct prudence_domain *domain = manual_domain();
        unsigned operations = f == HASH_FUNCTIONS - 1 ? OPERATIONS / 10 : OPERATIONS;

        random_state = 4711 + f + test_seed(0) * 1000;
        count = 0;
        memset(items, 0, sizeof items);
        hash = hash_functions[f];
        table = table_of_domain(domain, 0, 0, resizing ? PRUDENCE_HASH_FIXED : 0);
        for (unsigned step = 0; step < operations; step++) {
            operate(step, resizing);
            if (step % 100 == 0)
                prudence_manual_advance(domain);
        }
        remove_all(table);
        all_readers_leave(domain);
        assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
        assert_int_equal(prudence_domain_destroy(domain), 0);
    }
}

TEST(table_follows_its_objects)
{
    all_functions(false);
}

TEST(table_is_resized_at_random)
{
    all_functions(true);
}

SUITE()
