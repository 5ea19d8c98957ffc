/* SPDX-License-Identifier: MIT */
/*
 * Renames: refusals, readers that stay at old names, counts, and the order of locks. (The cases
 * "rename" of tests/model/source/hash_cases.c try every order of renames, exchanges, readers and
 * resizes.)
 */
#include "support/name_test.h"
#include "support/threads.h"

static struct prudence_hash *table, *other;
static struct named a, b, c, d;

static void begin(void)
{
    table = prudence_hash_create("table", NULL);
    other = prudence_hash_create("other", NULL);
    prudence_hash_add_duplicate(table, hash_mixed(1), &entry_set(&a, 1, 10)->name.node);
    prudence_hash_add_duplicate(other, hash_mixed(2), &entry_set(&b, 2, 20)->name.node);
}

static void end(void)
{
    remove_all(table);
    remove_all(other);
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
    assert_int_equal(prudence_hash_destroy(other, NULL, NULL), 0);
}

static int rename_to(struct prudence_hash *from, struct named *old, struct prudence_hash *to,
                     uint64_t key, struct named *fresh)
{
    entry_set(fresh, key, old->object);
    return prudence_hash_rename(from, &old->name, to, hash_mixed(key), entry_has_key, &key,
                                &fresh->name);
}

/* A rename that is refused, and so replaces no name. */
static int replace_refused(struct prudence_hash *from, struct named *old, struct prudence_hash *to,
                           uint64_t key, struct named *fresh)
{
    struct prudence_hash_name *replaced = &d.name;
    int error;

    entry_set(fresh, key, old->object);
    error = prudence_hash_rename_replace(from, &old->name, to, hash_mixed(key), entry_has_key, &key,
                                         &fresh->name, &replaced);
    assert_null(replaced);
    return error;
}

/* ------------------------------------------------------------------------------------- refusals */

TEST(a_name_that_exists_is_kept)
{
    begin();
    assert_int_equal(rename_to(table, &a, other, 2, &c), EEXIST);
    assert_ptr_equal(find(table, hash_mixed(1), 1), &a);
    assert_ptr_equal(find(other, hash_mixed(2), 2), &b);
    assert_int_equal(rename_to(table, &a, other, 3, &c), 0); /* `c` was not used */
    assert_null(find(table, hash_mixed(1), 1));
    assert_ptr_equal(find(other, hash_mixed(3), 3), &c);
    assert_int_equal(prudence_hash_count(table), 0);
    assert_int_equal(prudence_hash_count(other), 2);
    end();
}

TEST(a_name_that_has_gone_is_not_renamed)
{
    begin();
    assert_int_equal(prudence_hash_remove(table, &a.name.node), 0);
    assert_int_equal(rename_to(table, &a, other, 3, &c), ENOENT);
    assert_int_equal(rename_to(table, &b, other, 3, &c), ENOENT); /* it is in the other table */
    assert_int_equal(replace_refused(table, &a, other, 2, &c), ENOENT);
    entry_set(&d, 1, 0);
    assert_int_equal(prudence_hash_exchange(table, &a.name, &d.name, other, &b.name, &c.name),
                     ENOENT);
    assert_int_equal(prudence_hash_exchange(other, &b.name, &c.name, table, &a.name, &d.name),
                     ENOENT);
    assert_null(find(table, hash_mixed(1), 1));
    assert_ptr_equal(find(other, hash_mixed(2), 2), &b);
    end();
}

/* A rename to its own key replaces the name. */
TEST(a_name_takes_its_own_place)
{
    struct prudence_hash_name *replaced = &a.name;
    uint64_t key = 1;

    begin();
    assert_int_equal(rename_to(table, &a, table, 1, &c), 0);
    assert_ptr_equal(find(table, hash_mixed(1), 1), &c);
    entry_set(&d, 1, 10);
    assert_int_equal(prudence_hash_rename_replace(table, &c.name, table, hash_mixed(1),
                                                  entry_has_key, &key, &d.name, &replaced),
                     0);
    assert_null(replaced);
    assert_ptr_equal(find(table, hash_mixed(1), 1), &d);
    assert_int_equal(prudence_hash_count(table), 1);
    end();
}

static void misuse(void *unused)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_hash *far = table_of_domain(domain, 0, 0, 0);

    begin();
    assert_int_equal(rename_to(table, &a, far, 3, &c), EXDEV);
    assert_int_equal(rename_to(table, &a, other, 3, &a), EINVAL);
    assert_int_equal(replace_refused(table, &a, far, 3, &c), EXDEV);
    assert_int_equal(replace_refused(table, &a, other, 3, &a), EINVAL);
    a.key = 1;
    entry_set(&c, 1, 0);
    entry_set(&d, 2, 0);
    assert_int_equal(prudence_hash_exchange(table, &a.name, &c.name, table, &a.name, &d.name),
                     EINVAL);
    assert_int_equal(prudence_hash_exchange(table, &a.name, &c.name, other, &b.name, &c.name),
                     EINVAL);
    assert_int_equal(prudence_hash_exchange(table, &a.name, &b.name, other, &b.name, &d.name),
                     EINVAL);
    assert_ptr_equal(find(table, hash_mixed(1), 1), &a);
    assert_ptr_equal(find(other, hash_mixed(2), 2), &b);
    end();
    all_readers_leave(domain);
    assert_int_equal(prudence_hash_destroy(far, NULL, NULL), 0);
}

TEST(misuse_is_refused_and_named)
{
    char output[4096];

    expect_life(misuse, NULL, output, sizeof output);
    expect_text(output,
                "prudence_hash_rename: the tables 'table' and 'test' have different domains");
    expect_text(output, "prudence_hash_rename: a fresh name is one of the old ones");
    expect_text(output, "prudence_hash_exchange: a fresh name is one of the old ones");
}

TEST(without_a_table_or_a_name_nothing_is_done)
{
    uint64_t key = 3;

    begin();
    assert_int_equal(rename_to(NULL, &a, table, 3, &c), EINVAL);
    assert_int_equal(rename_to(table, &a, NULL, 3, &c), EINVAL);
    assert_int_equal(replace_refused(NULL, &a, table, 3, &c), EINVAL);
    assert_int_equal(prudence_hash_rename(table, NULL, table, 1, entry_has_key, &key, &c.name),
                     EINVAL);
    assert_int_equal(prudence_hash_rename(table, &a.name, table, 1, entry_has_key, &key, NULL),
                     EINVAL);
    assert_int_equal(prudence_hash_exchange(table, NULL, &c.name, other, &b.name, &d.name), EINVAL);
    assert_int_equal(prudence_hash_exchange(table, &a.name, &c.name, NULL, &b.name, &d.name),
                     EINVAL);
    assert_int_equal(prudence_hash_exchange(table, &a.name, &c.name, other, &b.name, NULL), EINVAL);
    end();
}

/* The fresh name is the one that is there. */
TEST(no_name_takes_its_own_place)
{
    struct prudence_hash_name *replaced = &a.name;
    uint64_t key = 2;

    begin();
    assert_int_equal(prudence_hash_rename_replace(table, &a.name, other, hash_mixed(2),
                                                  entry_has_key, &key, &b.name, &replaced),
                     EINVAL);
    assert_null(replaced);
    assert_ptr_equal(find(table, hash_mixed(1), 1), &a);
    assert_ptr_equal(find(other, hash_mixed(2), 2), &b);
    end();
}

TEST(nobody_needs_the_name_that_is_replaced)
{
    uint64_t key = 2;

    begin();
    entry_set(&c, 2, 10);
    assert_int_equal(prudence_hash_rename_replace(table, &a.name, other, hash_mixed(2),
                                                  entry_has_key, &key, &c.name, NULL),
                     0);
    assert_ptr_equal(find(other, hash_mixed(2), 2), &c);
    end();
}

/* ---------------------------------------------------------------------------- readers that stay */

#define LONG 50

/* A reader stays at each of an object's names in turn, while the object is renamed on and on. */
TEST(names_that_have_gone_stay_gone)
{
    static struct named names[LONG];

    begin();
    for (unsigned i = 0; i < LONG; i++) {
        assert_int_equal(rename_to(i % 2 ? other : table, i ? &names[i - 1] : &a,
                                   i % 2 ? table : other, 100 + i, &names[i]),
                         0);
        assert_false(prudence_hash_name_is_there(&a.name));
        for (unsigned j = 0; j <= i; j++)
            assert_int_equal(prudence_hash_name_is_there(&names[j].name), j == i);
    }
    end();
}

/* A reader that has passed the head of the chain, and is at a name that is replaced, finds the
 * fresh one after it. */
TEST(a_replaced_name_leads_to_the_fresh_one)
{
    uint64_t key = 2, spread = prudence_hash_spread_(hash_mixed(2));
    const struct prudence_hash_name_query_ query = {entry_has_key, &key};
    struct prudence_hash_name *replaced;
    uintptr_t link;

    begin();
    link = link_to(&b.name.node);
    entry_set(&c, 2, 10);
    assert_int_equal(prudence_hash_rename_replace(table, &a.name, other, hash_mixed(2),
                                                  entry_has_key, &key, &c.name, &replaced),
                     0);
    assert_ptr_equal(entry_of(replaced), &b);
    assert_ptr_equal(prudence_hash_search_(&link, spread, prudence_hash_name_matches_, &query),
                     &c.name.node);
    end();
}

static bool match_and_rename(const struct prudence_hash_node *node, const void *key)
{
    if (prudence_hash_name_is_there(&a.name))
        assert_int_equal(rename_to(table, &a, other, 3, &c), 0);
    return entry_has_key(node, key);
}

/* The reader is at the name, in its search or in the one of a table that is resized, while the name
 * goes. */
TEST(a_name_that_goes_under_a_reader_is_not_found)
{
    const uint64_t key = 1;
    const struct prudence_hash_name_query_ query = {match_and_rename, &key};

    begin();
    assert_null(prudence_hash_lookup_name(table, hash_mixed(1), match_and_rename, &key));
    end();
    begin();
    assert_null(
        prudence_hash_lookup_slow(table, hash_mixed(1), prudence_hash_name_matches_, &query));
    end();
}

/* Of four names, all in one chain or not, each takes the place of another one, in its table or the
 * other. Each leaves its chain and is no longer counted. */
TEST(replaced_names_are_taken_out_and_not_counted)
{
    static struct named names[4], fresh[4];

    for (unsigned way = 0; way < 4; way++) {
        struct prudence_hash *from, *to;
        struct prudence_hash_name *replaced;
        const uint64_t key = 12;

        begin();
        from = way & 1 ? other : table;
        to = way & 2 ? other : table;
        for (unsigned i = 0; i < 4; i++)
            prudence_hash_add_duplicate(i < 2 ? from : to, hash_mixed(7 + i % 2),
                                        &entry_set(&names[i], 10 + i, i)->name.node);
        entry_set(&fresh[0], key, 0);
        assert_int_equal(prudence_hash_rename_replace(from, &names[0].name, to, hash_mixed(7),
                                                      entry_has_key, &key, &fresh[0].name,
                                                      &replaced),
                         0);
        assert_ptr_equal(entry_of(replaced), &names[2]);
        check_chains(from);
        check_chains(to);
        entry_set(&fresh[1], 11, 3);
        entry_set(&fresh[3], 13, 1);
        assert_int_equal(prudence_hash_exchange(from, &names[1].name, &fresh[1].name, to,
                                                &names[3].name, &fresh[3].name),
                         0);
        check_chains(from);
        check_chains(to);
        assert_int_equal(prudence_hash_count(table) + prudence_hash_count(other), 2 + 3);
        assert_ptr_equal(find(from, hash_mixed(8), 11), &fresh[1]);
        assert_ptr_equal(find(to, hash_mixed(8), 13), &fresh[3]);
        end();
    }
}

/* ---------------------------------------------------------------------------------------- locks */

static unsigned compared;

static bool match_with_both_locked(const struct prudence_hash_node *node, const void *key)
{
    unsigned locked = 0;

    for (unsigned t = 0; t < 2; t++)
        for (unsigned i = 0; i < 64; i++)
            locked += (view_words((t ? other : table)->view)[i] & HASH_LOCKED) != 0;
    assert_int_equal(locked, 2);
    compared++;
    return entry_has_key(node, key);
}

/* A rename locks the buckets of both names, and no other, and only while it searches. */
TEST(a_rename_locks_two_buckets)
{
    uint64_t key = 2;

    begin();
    entry_set(&c, 2, 10);
    assert_int_equal(prudence_hash_rename(table, &a.name, other, hash_mixed(2),
                                          match_with_both_locked, &key, &c.name),
                     EEXIST);
    assert_int_equal(compared, 1);
    check_chains(table);
    check_chains(other);
    end();
}

#define TURNS 20000

static struct prudence_hash *left, *right;

/* Puts all keys below 20 into one chain, and the keys from 20 to 39 into another. */
static void must_rename(struct prudence_hash *from, struct named *old, struct prudence_hash *to,
                        uint64_t key, struct named *fresh)
{
    entry_set(fresh, key, old->object);
    if (prudence_hash_rename(from, &old->name, to, hash_mixed(key / 20), entry_has_key, &key,
                             &fresh->name))
        abort();
}

/* Thread 0 renames from left to right and back, thread 1 from right to left. */
static void *rename_there_and_back(void *first)
{
    const unsigned *me = first;
    struct named spare[8], *now = *me ? &b : &a;
    struct prudence_hash *home = *me ? right : left, *away = *me ? left : right;

    prudence_read_lock();
    for (unsigned turn = 0; turn < TURNS; turn += 2) {
        must_rename(home, now, away, 20 * !*me + *me, &spare[turn % 8]);
        must_rename(away, &spare[turn % 8], home, 20 * *me + *me, &spare[turn % 8 + 1]);
        now = &spare[turn % 8 + 1];
    }
    prudence_hash_remove(home, &now->name.node);
    prudence_read_unlock();
    return NULL;
}

static void two_threads(struct prudence_hash *of_low, struct prudence_hash *of_high)
{
    unsigned number[2] = {0, 1};
    pthread_t threads[2];

    left = of_low;
    right = of_high;
    prudence_hash_add_duplicate(left, hash_mixed(0), &entry_set(&a, 0, 10)->name.node);
    prudence_hash_add_duplicate(right, hash_mixed(1), &entry_set(&b, 21, 20)->name.node);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, rename_there_and_back, &number[i]), 0);
    threads_join(threads, 2);
    assert_int_equal(prudence_hash_count(table) + prudence_hash_count(other), 0);
}

TEST(renames_in_opposite_directions_end)
{
    begin();
    remove_all(table);
    remove_all(other);
    two_threads(table, other);
    two_threads(table, table);
    end();
}

SUITE()
