/* SPDX-License-Identifier: MIT */
/*
 * The cases that tables of values share beyond what is true of every table
 * (tables/test_contract.c): strings of any length, and keys of the other kind. The tables have the
 * same interface under two names, so before including this file a test defines:
 *
 * #define VALUES_TABLE struct prudence_map_values
 * #define VALUES_CALL(name) prudence_map_values_##name
 * #define VALUES_BYTES the flag of tables with strings
 * #define VALUES_ATTR and VALUES_STATS the structures of attributes and statistics
 * #define VALUES_PUT_DEFERS whether a put or an exchange replaces the entry
 * static const size_t values_sizes[][2] = {{length of a string, live bytes of its entry}, ...};
 */
#ifndef TESTS_SUPPORT_VALUES_TEST_H
#define TESTS_SUPPORT_VALUES_TEST_H

#include "support/slab_test.h"
#include "support/updates.h"

static char values[10000]; /* values are addresses in this array */

static VALUES_TABLE *make_table(unsigned flags, struct prudence_domain *domain)
{
    VALUES_ATTR attr = {.size = sizeof attr, .flags = flags, .domain = domain};
    VALUES_TABLE *table = VALUES_CALL(create)("test", &attr);

    assert_non_null(table);
    return table;
}

static VALUES_STATS values_stats(VALUES_TABLE *table)
{
    VALUES_STATS stats;

    assert_int_equal(VALUES_CALL(stats)(table, &stats), 0);
    return stats;
}

static void *erase_found(VALUES_TABLE *table, uint64_t key)
{
    UPDATES_TAKE(void, VALUES_CALL(erase)(table, key, &found));
}

static void *erase_bytes_found(VALUES_TABLE *table, const void *bytes, size_t length)
{
    UPDATES_TAKE(void, VALUES_CALL(erase_bytes)(table, bytes, length, &found));
}

/* ------------------------------------------------------------------------ strings of any length */

#define VALUES_LONG 100000

/* Uses each length at which another size of entries begins, and some that need many pages. Live
 * bytes equal the requested ones. */
TEST(strings_of_any_length)
{
    struct prudence_domain *domain = manual_domain();
    VALUES_TABLE *table = make_table(VALUES_BYTES, domain);
    uint64_t live = values_stats(table).bytes_live;
    char *text = malloc(VALUES_LONG);

    for (unsigned i = 0; i < sizeof values_sizes / sizeof values_sizes[0]; i++) {
        const size_t length = values_sizes[i][0], bytes = values_sizes[i][1];
        void *old = NULL;

        memset(text, 'a' + (int)i, VALUES_LONG);
        assert_int_equal(VALUES_CALL(add_bytes)(table, text, length, &values[i], NULL), 0);
        assert_int_equal(values_stats(table).bytes_live, live + bytes);
        assert_int_equal(VALUES_CALL(add_bytes)(table, text, length, &values[0], &old), EEXIST);
        assert_ptr_equal(old, &values[i]);
        assert_int_equal(VALUES_CALL(replace_bytes)(table, text, length, &values[9999], text),
                         ENOENT);
        assert_int_equal(VALUES_CALL(put_bytes)(table, text, length, &values[i + 1], &old), 0);
        assert_ptr_equal(old, &values[i]);
        assert_int_equal(values_stats(table).bytes_live, live + bytes);
        if (VALUES_PUT_DEFERS)
            assert_true(values_stats(table).bytes_latent >= bytes);
        else
            assert_int_equal(values_stats(table).bytes_latent, 0);
        assert_ptr_equal(VALUES_CALL(get_bytes)(table, text, length), &values[i + 1]);
        assert_ptr_equal(erase_bytes_found(table, text, length), &values[i + 1]);
        assert_int_equal(values_stats(table).bytes_live, live);
        assert_true(values_stats(table).bytes_latent >= bytes);
        all_readers_leave(domain);
        assert_int_equal(values_stats(table).bytes_latent, 0);
    }
    free(text);
    assert_int_equal(VALUES_CALL(destroy)(table, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* ----------------------------------------------------------------------------------------- keys */

TEST(keys_of_the_other_kind_are_refused)
{
    VALUES_TABLE *table = make_table(0, NULL), *names = make_table(VALUES_BYTES, NULL);
    void *value = values, *old = NULL;

    assert_int_equal(VALUES_CALL(put_bytes)(table, "12345678", 8, value, &old), EINVAL);
    assert_int_equal(VALUES_CALL(put_bytes)(table, NULL, 8, value, &old), EINVAL);
    assert_int_equal(VALUES_CALL(add_bytes)(table, "", 0, value, &old), EINVAL);
    assert_int_equal(VALUES_CALL(replace_bytes)(table, "", 0, value, values + 1), EINVAL);
    assert_int_equal(VALUES_CALL(erase_bytes)(table, "", 0, &old), EINVAL);
    assert_null(VALUES_CALL(get_bytes)(table, "", 0));
    assert_int_equal(VALUES_CALL(put)(names, 1, value, &old), EINVAL);
    assert_int_equal(VALUES_CALL(add)(names, 1, value, &old), EINVAL);
    assert_int_equal(VALUES_CALL(replace)(names, 1, value, values + 1), EINVAL);
    assert_int_equal(VALUES_CALL(erase)(names, 1, &old), EINVAL);
    assert_null(VALUES_CALL(get)(names, 1));
    assert_null(old);
    /* Only the empty string may lack an address. */
    assert_int_equal(VALUES_CALL(put_bytes)(names, NULL, 1, value, &old), EINVAL);
    assert_int_equal(VALUES_CALL(erase_bytes)(names, NULL, 8, &old), EINVAL);
    assert_int_equal(VALUES_CALL(put_bytes)(names, NULL, 0, value, &old), 0);
    assert_ptr_equal(erase_bytes_found(names, "", 0), value);
    assert_null(old);
    assert_int_equal(VALUES_CALL(destroy)(table, NULL, NULL), 0);
    assert_int_equal(VALUES_CALL(destroy)(names, NULL, NULL), 0);
}

#endif /* TESTS_SUPPORT_VALUES_TEST_H */
