/* SPDX-License-Identifier: MIT */
/*
 * Any call for memory may fail, in every kind of table (kinds.h): a table that cannot be made is
 * not made, a refused update has changed nothing, a hash table that cannot be resized continues
 * with its arrays, and an ordered map frees removed nodes (support/every_call.h). A table that
 * cannot be made inside a section leaves nothing in its domain.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "tables/kinds.h"

#include <prudence/call.h>
#include <prudence/hash_rename.h>
#include <prudence/hash_values.h>
#include <prudence/id_table.h>
#include <prudence/routes.h>

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

/* Makes a table whose first array is not in the table's own memory. */
static void *create_in(struct prudence_domain *domain)
{
    const struct prudence_hash_attr hash = {.size = sizeof hash, .buckets = 512, .domain = domain};
    const struct prudence_hash_values_attr values = {
        .size = sizeof values, .buckets = 512, .domain = domain};
    const struct prudence_id_table_attr ids = {.size = sizeof ids, .ids = 512, .domain = domain};
    const struct prudence_routes_attr routes = {
        .size = sizeof routes, .prefixes = 9999, .domain = domain};

    switch (tested - table_kinds) {
    case TABLE_HASH:
        return prudence_hash_create("test", &hash);
    case TABLE_HASH_VALUES:
        return prudence_hash_values_create("test", &values);
    case TABLE_IDS:
        return prudence_id_table_create("test", &ids);
    default:
        return prudence_routes_create("test", &routes);
    }
}

static void create_inside(enum prudence_domain_kind kind)
{
    struct prudence_domain *domain;

    memory_succeed();
    domain = prudence_domain_create("own", kind, NULL);
    if (kind == PRUDENCE_DOMAIN_QSBR)
        prudence_qsbr_online(domain);
    prudence_domain_read_lock(domain);
    failures_begin();
    table = create_in(domain);
    failures_end();
    prudence_domain_read_unlock(domain);
    if (kind == PRUDENCE_DOMAIN_QSBR)
        prudence_qsbr_offline(domain);
    if (table)
        assert_int_equal(tested->destroy(table, NULL, NULL), 0);
    assert_int_equal(prudence_domain_barrier(domain), 0); /* the caches may end later */
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static void create_in_section(void)
{
    create_inside(PRUDENCE_DOMAIN_MEMB);
}

static void create_online(void)
{
    create_inside(PRUDENCE_DOMAIN_QSBR);
}

static void a_table_that_cannot_be_made_in_a_section(void)
{
    const struct failure_row row = {tested->name, scenario, NULL, 1, false};
    const unsigned kind = (unsigned)(tested - table_kinds);

    if (kind != TABLE_HASH && kind != TABLE_HASH_VALUES && kind != TABLE_IDS &&
        kind != TABLE_ROUTES_IPV4)
        return;
    for (unsigned i = 0; i < 4; i++) {
        use = i % 2 ? create_online : create_in_section;
        every_call(&row, i / 2 ? UINT32_MAX : 1);
    }
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
    {"a table that cannot be made in a section", a_table_that_cannot_be_made_in_a_section,
     TABLE_DOMAIN, 0},
    {"renames do not fail", renames_do_not_fail, TABLE_OBJECTS | TABLE_DOMAIN, TABLE_SORTED},
};

int main(void)
{
    pin_thread();
    return table_cases_run(cases, sizeof cases / sizeof cases[0]);
}
