/* SPDX-License-Identifier: MIT */
/*
 * Random renames, exchanges, additions and removals in two hash tables and in a model, which maps
 * each key of each table to its object. Runs with good hashes and with the worst, while the tables
 * are resized at random.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "tables/hash_resize.h"
#include "support/name_test.h"
#include "support/test_seed.h"

#define KEYS       90
#define OPERATIONS 12000
#define SPARE      4

static struct prudence_hash *tables[2];
static struct named *model[2][KEYS]; /* NULL: no object has the key */
static struct named entries[2 * KEYS + SPARE], *unused[2 * KEYS + SPARE];
static unsigned unused_count, objects;
static uint64_t (*hash)(uint64_t);
static uint64_t random_state;

static unsigned below(unsigned bound)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)((random_state >> 33) % bound);
}

static void put_back(struct named *entry)
{
    unused[unused_count++] = entry;
}

/* Takes the entry that was put back first, so that old names stay unchanged for a while. */
static struct named *take(uint64_t key, unsigned object)
{
    struct named *entry = unused[0];

    assert_true(unused_count > 0);
    memmove(&unused[0], &unused[1], --unused_count * sizeof unused[0]);
    return entry_set(entry, key, object);
}

static void check_key(unsigned t, unsigned key)
{
    const struct named *found = find(tables[t], hash(key), key);

    assert_ptr_equal(found, model[t][key]);
    assert_true(!found || found->key == key);
}

/* ----------------------------------------------------------------------------------- operations */

static void rename_one(unsigned from, unsigned key, unsigned to, unsigned other)
{
    struct named *old = model[from][key], *there = model[to][other];
    struct named *fresh = take(other, old->object);
    uint64_t k = other;
    int error = prudence_hash_rename(tables[from], &old->name, tables[to], hash(other),
                                     entry_has_key, &k, &fresh->name);

    if (there && there != old) {
        assert_int_equal(error, EEXIST);
        put_back(fresh);
        return;
    }
    assert_int_equal(error, 0);
    model[from][key] = NULL;
    model[to][other] = fresh;
    assert_int_equal(prudence_hash_rename(tables[from], &old->name, tables[to], hash(other),
                                          entry_has_key, &k, &unused[0]->name),
                     ENOENT);
    put_back(old);
}

static void rename_replace(unsigned from, unsigned key, unsigned to, unsigned other)
{
    struct named *old = model[from][key], *there = model[to][other];
    struct named *fresh = take(other, old->object);
    struct prudence_hash_name *replaced = &fresh->name;
    uint64_t k = other;

    assert_int_equal(prudence_hash_rename_replace(tables[from], &old->name, tables[to], hash(other),
                                                  entry_has_key, &k, &fresh->name, &replaced),
                     0);
    assert_ptr_equal(entry_of(replaced), there == old ? NULL : there);
    model[from][key] = NULL;
    model[to][other] = fresh;
    put_back(old);
    if (replaced)
        put_back(there);
}

static void exchange(unsigned from, unsigned key, unsigned to, unsigned other)
{
    struct named *a = model[from][key], *b = model[to][other], *fresh_a, *fresh_b;

    if (!b || a == b)
        return;
    fresh_a = take(key, b->object);
    fresh_b = take(other, a->object);
    assert_int_equal(prudence_hash_exchange(tables[from], &a->name, &fresh_a->name, tables[to],
                                            &b->name, &fresh_b->name),
                     0);
    model[from][key] = fresh_a;
    model[to][other] = fresh_b;
    assert_int_equal(prudence_hash_exchange(tables[from], &fresh_a->name, &a->name, tables[to],
                                            &b->name, &unused[0]->name),
                     ENOENT);
    put_back(a);
    put_back(b);
}

static void add_or_remove(unsigned t, unsigned key)
{
    struct named *entry = model[t][key];

    if (entry) {
        assert_int_equal(prudence_hash_remove(tables[t], &entry->name.node), 0);
        model[t][key] = NULL;
        put_back(entry);
    } else {
        model[t][key] = entry = take(key, objects++);
        prudence_hash_add_duplicate(tables[t], hash(key), &entry->name.node);
    }
}

static void operate(void)
{
    unsigned from = below(2), to = below(2), key = below(KEYS), other = below(KEYS);

    if (!model[from][key] || below(6) == 0)
        add_or_remove(from, key);
    else if (below(3) == 0)
        exchange(from, key, to, other);
    else
        (below(2) ? rename_one : rename_replace)(from, key, to, other);
    check_key(from, key);
    check_key(to, other);
}

/* Checks that a walk visits every name once, and no other. */
static void check_all(unsigned t)
{
    struct prudence_hash_walk walk;
    struct prudence_hash_node *node;
    unsigned walked = 0, there = 0;

    for (unsigned key = 0; key < KEYS; key++) {
        check_key(t, key);
        there += model[t][key] != NULL;
    }
    prudence_hash_for_each(&walk, tables[t], node)
    {
        struct prudence_hash_name *name =
            prudence_hash_entry(node, struct prudence_hash_name, node);

        assert_true(prudence_hash_name_is_there(name));
        assert_int_equal(name->change, 0);
        assert_ptr_equal(model[t][entry_of(name)->key], entry_of(name));
        walked++;
    }
    assert_int_equal(walked, there);
    assert_int_equal(prudence_hash_count(tables[t]), there);
    check_chains(tables[t]);
}

/* Begins a resize, continues one, or finishes it. */
static void resize_a_bit(struct prudence_hash *table)
{
    struct hash_table *inside = hash_of(table);

    if (below(3) == 0) {
        assert_int_equal(prudence_hash_resize(table, UINT64_C(64) << below(6)), 0);
    } else if (inside->phase == HASH_IDLE) {
        assert_true(hash_resize_begin(inside, table->view, 6 + below(6)));
    } else {
        hash_resize_step(inside);
    }
}

static void with_hash(uint64_t (*function)(uint64_t), uint64_t seed)
{
    struct prudence_domain *domain = manual_domain();

    hash = function;
    random_state = seed + test_seed(0) * 1000;
    memset(model, 0, sizeof model);
    unused_count = 0;
    for (unsigned i = 0; i < sizeof entries / sizeof entries[0]; i++)
        put_back(&entries[i]);
    for (unsigned t = 0; t < 2; t++)
        tables[t] = table_of_domain(domain, 64, 0, PRUDENCE_HASH_FIXED);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        operate();
        if (i % 7 == 0)
            resize_a_bit(tables[below(2)]);
        if (i % 101 == 0) {
            check_all(0);
            check_all(1);
            prudence_manual_advance(domain);
        }
    }
    for (unsigned t = 0; t < 2; t++)
        remove_all(tables[t]);
    all_readers_leave(domain);
    for (unsigned t = 0; t < 2; t++)
        assert_int_equal(prudence_hash_destroy(tables[t], NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(tables_and_model_agree)
{
    for (unsigned f = 0; f < HASH_FUNCTIONS; f++)
        with_hash(hash_functions[f], 99 + f);
}

SUITE()
