/* SPDX-License-Identifier: MIT */
/*
 * Any call for memory may fail, in every kind of table (kinds.h): a table that cannot be made is
 * not made, a refused update has changed nothing, a hash table that cannot be resized continues
 * with its arrays, and an ordered map frees removed nodes (support/every_call.h).
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "tables/kinds.h"

#include <prudence/hash_rename.h>

#include "support/every_call.h"
#include "support/hash_test.h"

#define ENTRIES 1900

static struct entry entries[ENTRIES], others[ENTRIES];
static void *table;
static unsigned count; /* of the kind's keys that are used */

/* Checks that the table holds exactly the keys from `first` to `behind` - 1. */
static void expect_entries(unsigned first, unsigned behind)
{
    for (unsigned i = 0; i < count; i++)
        assert_ptr_equal(tested->get(table, i), i >= first && i < behind ? &entries[i] : NULL);
    assert_int_equal(tested->count(table), behind - first);
}

/* Makes an update that may be refused once, and then has changed nothing. */
#define UPDATE(update, first, behind)                                                              \
    do {                                                                                           \
        int error = tested->update;                                                                \
                                                                                                   \
        if (!error)                                                                                \
            break;                                                                                 \
        assert_int_equal(error, ENOMEM);                                                           \
        failures_end();                                                                            \
        expect_entries(first, behind);                                                             \
    } while (true)

/* Begins the failures. A table that cannot be made is made after them. */
static void make_table(void)
{
    failures_begin();
    table = tested->create("test", tested->attr);
    if (table)
        return;
    assert_int_equal(errno, ENOMEM);
    failures_end();
    table = tested->create("test", tested->attr);
}

/* Adds by one call and the other, and changes each value and back. */
static void fill(void)
{
    for (unsigned i = 0; i < count; i++) {
        struct entry *old = NULL;

        if (i % 2 && tested->put)
            UPDATE(put(table, i, &entries[i], NULL), 0, i);
        else
            UPDATE(add(table, i, &entries[i], NULL), 0, i);
        if (tested->put)
            UPDATE(put(table, i, &others[i], &old), 0, i + 1);
        else
            UPDATE(swap(table, i, &others[i], &old), 0, i + 1);
        assert_ptr_equal(old, &entries[i]);
        while (tested->replace ? tested->replace(table, i, &others[i], &entries[i])
                               : tested->swap(table, i, &entries[i], NULL))
            failures_end();
    }
}

static void empty(void)
{
    struct entry *old;

    if (tested->flags & TABLE_ROOM)
        memory_fail(0, UINT32_MAX);
    for (unsigned i = 0; i < count; i++) {
        if (tested->flags & TABLE_ROOM_TO_CHANGE) {
            assert_int_equal((tested->put ? tested->put : tested->swap)(table, i, &others[i], &old),
                             0);
            assert_ptr_equal(old, &entries[i]);
        }
        UPDATE(erase(table, i, &old), i, count);
        assert_ptr_equal(old, tested->flags & TABLE_ROOM_TO_CHANGE ? &others[i] : &entries[i]);
        if (i % 499 == 0)
            expect_entries(i + 1, count);
    }
    memory_fail(UINT32_MAX, 0);
    expect_entries(count, count);
}

static void resize_hash(bool must)
{
    bool resized = prudence_hash_resize(table, 1 << 18) == 0;

    assert_true(resized || (!must && hash_stats_of(table).refused > 0));
    assert_true(!must || hash_stats_of(table).buckets == 1 << 18);
    expect_entries(0, count);
}

static void use_table(void)
{
    const bool resizes = tested == &table_kinds[TABLE_HASH];
    struct table_stats before, after;

    make_table();
    assert_int_equal(tested->stats(table, &before), 0);
    fill();
    if (resizes)
        resize_hash(false);
    if (tested->flags & TABLE_ROOM)
        failures_end();
    expect_entries(0, count);
    if (resizes)
        resize_hash(true);
    tested->check(table);
    empty();
    tested->check(table);
    assert_int_equal(tested->stats(table, &after), 0);
    if (tested->at)
        assert_int_equal(after.bytes_live, before.bytes_live);
    assert_int_equal(tested->destroy(table, NULL, NULL), 0);
}

/* Once there are tables, and fresh names, renames do not fail, even when no resize succeeds. */

static struct prudence_hash_name names[ENTRIES];

static bool any(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct prudence_hash_name, node) == key;
}

static void use_renames(void)
{
    struct prudence_hash *hash;

    make_table();
    hash = table;
    for (unsigned i = 0; i < ENTRIES; i += 2)
        prudence_hash_add_duplicate(hash, hash_mixed(i), &names[i].node);
    for (unsigned i = 0; i < ENTRIES; i += 2) {
        struct prudence_hash_name *fresh = &names[i + 1];

        assert_int_equal(
            prudence_hash_rename(hash, &names[i], hash, hash_mixed(i + 1), any, fresh, fresh), 0);
        assert_ptr_equal(prudence_hash_lookup_name(hash, hash_mixed(i + 1), any, fresh), fresh);
    }
    failures_end();
    assert_int_equal(prudence_hash_count(hash), ENTRIES / 2);
    remove_all(hash);
    assert_int_equal(prudence_hash_destroy(hash, NULL, NULL), 0);
}

/* ------------------------------------------------------------------------------------ all calls */

static void (*use)(void);

static void scenario(void)
{
    count = *tested->keys < ENTRIES ? *tested->keys : ENTRIES;
    use();
    failures_end();
}

static void each_call(void (*of)(void), unsigned fails)
{
    const struct failure_row row = {tested->name, scenario, NULL,
                                    tested->flags & TABLE_KEEPS ? 2 : 9, true};

    use = of;
    every_call(&row, fails);
}

static void one_call_fails(void)
{
    each_call(use_table, 1);
}

/* Continues until an update is refused, where updates allocate. */
static void all_calls_fail_from_then_on(void)
{
    each_call(use_table, UINT32_MAX);
}

static void renames_do_not_fail(void)
{
    if (tested == &table_kinds[TABLE_HASH]) {
        each_call(use_renames, 1);
        each_call(use_renames, UINT32_MAX);
    }
}

static const struct table_case cases[] = {
    {"one call fails", one_call_fails, 0, 0},
    {"all calls fail from then on", all_calls_fail_from_then_on, 0, TABLE_PREPARED},
    {"renames do not fail", renames_do_not_fail, TABLE_OBJECTS | TABLE_DOMAIN, TABLE_SORTED},
};

int main(void)
{
    pin_thread();
    return table_cases_run(cases, sizeof cases / sizeof cases[0]);
}
