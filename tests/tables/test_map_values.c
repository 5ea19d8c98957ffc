/* SPDX-License-Identifier: MIT */
/*
 * Maps of values, beyond the contract of all tables (test_contract.c) and the cases of tables of
 * values (values_test.h): entries that readers still see.
 *
 * ctest: not-with thread (one thread)
 */
#include <prudence/map_values.h>

#define VALUES_TABLE      struct prudence_map_values
#define VALUES_CALL(name) prudence_map_values_##name
#define VALUES_BYTES      PRUDENCE_MAP_VALUES_BYTES
#define VALUES_ATTR       struct prudence_map_values_attr
#define VALUES_STATS      struct prudence_map_stats
#define VALUES_PUT_DEFERS true

static const size_t values_sizes[][2] = {{0, 32},      {8, 32},      {9, 64},         {40, 64},
                                         {41, 128},    {104, 128},   {105, 256},      {232, 256},
                                         {233, 512},   {488, 512},   {489, 4096},     {4072, 4096},
                                         {4073, 8192}, {8168, 8192}, {100000, 102400}};

#include "support/values_test.h"

TEST(no_string_is_that_long)
{
    struct prudence_map_values *names = make_table(PRUDENCE_MAP_VALUES_BYTES, NULL);
    void *old = NULL;

    assert_int_equal(prudence_map_values_put_bytes(names, "", SIZE_MAX, values, &old), ENOMEM);
    assert_null(old);
    assert_int_equal(prudence_map_values_destroy(names, NULL, NULL), 0);
}

/* --------------------------------------------------------------------------------------- memory */

/* A reader that has found a value keeps its entry: the entry is not written or reused until the
 * reader has left. */
TEST(an_entry_stays_for_its_readers)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_map_values *map = make_table(0, domain);
    const struct prudence_map_node *replaced, *erased;
    uint64_t live = values_stats(map).bytes_live;

    assert_int_equal(prudence_map_values_put(map, 1, &values[1], NULL), 0);
    replaced = prudence_map_lookup(prudence_map_values_nodes(map), 1);
    assert_int_equal(values_stats(map).bytes_live, live + 16);
    assert_int_equal(prudence_map_values_replace(map, 1, &values[1], &values[2]), 0);
    erased = prudence_map_lookup(prudence_map_values_nodes(map), 1);
    assert_ptr_equal(erase_found(map, 1), &values[2]);
    assert_int_equal(values_stats(map).bytes_live, live);
    assert_true(values_stats(map).bytes_latent >= 32);
    for (unsigned i = 2; i < 1000; i++)
        assert_int_equal(prudence_map_values_put(map, i, &values[9], NULL), 0);
    assert_ptr_equal(prudence_map_values_value(replaced), &values[1]);
    assert_ptr_equal(prudence_map_values_value(erased), &values[2]);
    for (unsigned i = 2; i < 1000; i++)
        assert_ptr_equal(erase_found(map, i), &values[9]);
    all_readers_leave(domain);
    assert_int_equal(values_stats(map).bytes_latent, 0);
    assert_int_equal(prudence_map_values_destroy(map, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

SUITE()
