/* SPDX-License-Identifier: MIT */
/*
 * Hash tables of values, beyond the contract of all tables (test_contract.c) and the cases of
 * tables of values (values_test.h): hashes, and the tables' own secrets; entries and arrays that
 * readers still see.
 *
 * ctest: not-with thread (one thread)
 */
#include <stddef.h>

#include <prudence/hash_values.h>

#define VALUES_TABLE      struct prudence_hash_values
#define VALUES_CALL(name) prudence_hash_values_##name
#define VALUES_BYTES      PRUDENCE_HASH_VALUES_BYTES
#define VALUES_ATTR       struct prudence_hash_values_attr
#define VALUES_STATS      struct prudence_hash_stats
#define VALUES_PUT_DEFERS false

static const size_t values_sizes[][2] = {{0, 64},      {1, 64},         {32, 64},     {33, 128},
                                         {96, 128},    {97, 256},       {224, 256},   {225, 512},
                                         {480, 512},   {481, 4096},     {4064, 4096}, {4065, 8192},
                                         {8160, 8192}, {100000, 102400}};

#include "tables/hash_resize.h"
#include "support/values_test.h"

#include "tables/hash_values.h"

static unsigned disposed;

static void dispose(void *value, void *argument)
{
    assert_ptr_equal(argument, &disposed);
    disposed++;
}

/* ------------------------------------------------------------------------------------ arguments */

TEST(no_table_has_nothing)
{
    assert_null(prudence_hash_values_get(NULL, 1));
    assert_null(prudence_hash_values_get_bytes(NULL, "a", 1));
}

/* --------------------------------------------------------------------------------------- hashes */

/* Hashes strings of zero bytes, of increasing length, with a key of zeros. The expected values
 * come from Python 3.11 (PYTHONHASHSEED=0), which uses this hash. */
TEST(hashes_are_those_of_siphash)
{
    static const uint64_t of_zeros[] = {
        UINT64_C(0x68a914128e01e473), UINT64_C(0x558f3fd350ea8cef), UINT64_C(0xd506738d5400b538),
        UINT64_C(0xcc2247b79ac48af0), UINT64_C(0xf810d4775d7d3a92), UINT64_C(0x3c02810c6e98c2c3),
        UINT64_C(0x897ea795b1b7b7ac), UINT64_C(0xbd60acb658c79e45), UINT64_C(0x66b1b52b4f6ef1c4)};
    static const uint8_t zeros[32];
    const struct prudence_hash_secret none = {{0, 0}};

    for (unsigned i = 0; i < sizeof of_zeros / sizeof of_zeros[0]; i++)
        assert_true(prudence_hash_bytes(&none, zeros, i + 1) == of_zeros[i]);
}

/* Hashes the bytes 0, 1, 2, ... with a key of the bytes 0 to 15; a number has the hash of its
 * bytes. */
TEST(hashes_depend_on_key_and_bytes)
{
    static const uint64_t of_counts[] = {
        UINT64_C(0xabac0158050fc4dc), UINT64_C(0xc9f49bf37d57ca93), UINT64_C(0x82cb9b024dc7d44d),
        UINT64_C(0x8bf80ab8e7ddf7fb), UINT64_C(0xcf75576088d38328), UINT64_C(0xdef9d52f49533b67),
        UINT64_C(0xc50d2b50c59f22a7), UINT64_C(0xd3927d989bb11140), UINT64_C(0x369095118d299a8e),
        UINT64_C(0x25a48eb36c063de4), UINT64_C(0x79de85ee92ff097f), UINT64_C(0x70c118c1f94dc352),
        UINT64_C(0x78a384b157b4d9a2), UINT64_C(0x306f760c1229ffa7), UINT64_C(0x605aa111c0f95d34),
        UINT64_C(0xd320d86d2a519956), UINT64_C(0xcc4fdd1a7d908b66), UINT64_C(0x9cf2689063dbd80c)};
    const struct prudence_hash_secret key = {
        {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};
    uint8_t bytes[32];

    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    for (unsigned i = 0; i < sizeof of_counts / sizeof of_counts[0]; i++)
        assert_true(prudence_hash_bytes(&key, bytes, i) == of_counts[i]);
    assert_true(prudence_hash_number(&key, UINT64_C(0x0706050403020100)) == of_counts[8]);
}

TEST(secrets_differ)
{
    struct prudence_hash_secret one = {{0, 0}}, other = {{0, 0}};

    prudence_hash_draw_secret(&one);
    prudence_hash_draw_secret(&other);
    assert_true(one.words[0] != other.words[0] && one.words[1] != other.words[1]);
    assert_true(one.words[0] && one.words[1]);
    assert_true(prudence_hash_bytes(&one, "name", 4) != prudence_hash_bytes(&other, "name", 4));
}

/* Returns the word of an entry that holds the number, or the string's length: after its node and
 * its value. */
static uint64_t *number_in_first(struct prudence_hash_values *table)
{
    struct prudence_hash_walk walk;

    return (uint64_t *)(prudence_hash_first(&walk, &table->table->public) + 1) + 1;
}

/* Two keys share a hash by chance once in 2^64, so the test writes another key into the entry. */
TEST(keys_are_compared)
{
    struct prudence_hash_values *table = make_table(0, NULL),
                                *names = make_table(PRUDENCE_HASH_VALUES_BYTES, NULL);
    struct prudence_hash_values_walk walk;

    assert_int_equal(prudence_hash_values_put(table, 1, &values[1], NULL), 0);
    *number_in_first(table) = 2;
    assert_null(prudence_hash_values_get(table, 1));
    assert_null(erase_found(table, 1));
    assert_int_equal(prudence_hash_values_add(table, 1, &values[2], NULL), 0);
    assert_int_equal(prudence_hash_values_count(table), 2);
    assert_int_equal(prudence_hash_values_put_bytes(names, "here", 4, &values[1], NULL), 0);
    *number_in_first(names) = 3;
    assert_null(prudence_hash_values_get_bytes(names, "here", 4));
    *number_in_first(names) = 4;
    assert_ptr_equal(prudence_hash_values_get_bytes(names, "here", 4), &values[1]);
    assert_ptr_equal(prudence_hash_values_first(&walk, names), &values[1]);
    memcpy((void *)(uintptr_t)walk.bytes, "hare", 4);
    assert_null(prudence_hash_values_get_bytes(names, "here", 4));
    assert_int_equal(prudence_hash_values_destroy(table, dispose, &disposed), 0);
    assert_int_equal(prudence_hash_values_destroy(names, dispose, &disposed), 0);
}

/* Nobody can know which keys share a bucket, so walks have a different order in each table. */
TEST(tables_have_secrets_of_their_own)
{
    struct prudence_hash_values *tables[2] = {make_table(0, NULL), make_table(0, NULL)};
    struct prudence_hash_values_walk walks[2];
    unsigned same = 0;

    for (unsigned t = 0; t < 2; t++)
        for (uint64_t i = 0; i < 1000; i++)
            assert_int_equal(prudence_hash_values_put(tables[t], i << 32, values, NULL), 0);
    assert_non_null(prudence_hash_values_first(&walks[0], tables[0]));
    assert_non_null(prudence_hash_values_first(&walks[1], tables[1]));
    do
        same += walks[0].key == walks[1].key;
    while (prudence_hash_values_next(&walks[0]) && prudence_hash_values_next(&walks[1]));
    assert_true(same < 50); /* the expected number is 1 */
    for (unsigned t = 0; t < 2; t++)
        assert_int_equal(prudence_hash_values_destroy(tables[t], dispose, &disposed), 0);
}

/* --------------------------------------------------------------------------------------- memory */

/* A reader that has found an entry keeps it: the entry is not reused or written until the reader
 * has left. So a walk at the entry still has the string. */
TEST(an_entry_stays_for_its_readers)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_hash_values *table = make_table(PRUDENCE_HASH_VALUES_BYTES, domain);
    struct prudence_hash_values_walk walk;
    uint64_t live = values_stats(table).bytes_live;

    assert_int_equal(prudence_hash_values_put_bytes(table, "here", 4, &values[1], NULL), 0);
    assert_ptr_equal(prudence_hash_values_first(&walk, table), &values[1]);
    assert_int_equal(values_stats(table).bytes_live, live + 64);
    assert_int_equal(prudence_hash_values_replace_bytes(table, "here", 4, &values[1], &values[2]),
                     0);
    assert_ptr_equal(erase_bytes_found(table, "here", 4), &values[2]);
    assert_int_equal(values_stats(table).bytes_live, live);
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(prudence_hash_values_put_bytes(table, &i, sizeof i, &values[9], NULL), 0);
    assert_int_equal(walk.length, 4);
    assert_memory_equal(walk.bytes, "here", 4);
    for (unsigned i = 0; i < 1000; i++)
        assert_ptr_equal(erase_bytes_found(table, &i, sizeof i), &values[9]);
    assert_null(prudence_hash_values_next(&walk));
    all_readers_leave(domain);
    assert_int_equal(values_stats(table).bytes_latent, 0);
    assert_int_equal(prudence_hash_values_destroy(table, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* Updates take the steps of a resize in sections; the replaced array is deferred after one. (The
 * first array is the table's own, so the second one is looked at.) */
TEST(an_array_is_deferred_outside_of_sections)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_hash_values *table = make_table(0, domain);
    uint64_t key = 0, second = 0;

    while (table->table->phase != HASH_MOVING || view_order(second) == VIEW_ORDER_SMALL) {
        second = table->table->public.view;
        assert_int_equal(prudence_hash_values_put(table, key++, values, NULL), 0);
        second = table->table->phase == HASH_MOVING ? table->table->from : second;
    }
    while (table->table->phase == HASH_MOVING)
        hash_resize_step(table->table);
    hash_resize_step(table->table);
    assert_int_equal(table->table->phase, HASH_LEAVING);
    assert_int_equal(values_stats(table).bytes_latent, 0);
    assert_int_equal(prudence_hash_values_put(table, 0, values, NULL), 0);
    assert_int_equal(table->table->phase, HASH_IDLE);
    assert_true(values_stats(table).bytes_latent >= view_bytes(second));
    all_readers_leave(domain);
    assert_int_equal(prudence_hash_values_destroy(table, dispose, &disposed), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

SUITE()
