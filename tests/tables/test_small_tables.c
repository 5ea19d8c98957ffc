/* SPDX-License-Identifier: MIT */
/*
 * Thousands of small tables: what each takes, and that the memory goes back to the system when they
 * are destroyed.
 *
 * ctest: not-with sanitizers (they take memory of their own for each object)
 */
#include <stdio.h>

#include <prudence/hash.h>
#include <prudence/hash_values.h>
#include <prudence/id_table.h>
#include <prudence/map.h>
#include <prudence/map_values.h>
#include <prudence/rcu.h>
#include <prudence/routes.h>

#include "os/os.h"
#include "tables/object_count.h"
#include "support/suite.h"

#define TABLES 5000

static void *tables[TABLES];
static int value;

static void no_value(void *of_key, void *unused)
{
    assert_ptr_equal(of_key, &value);
    (void)unused;
}

static void *make_hash(void)
{
    return prudence_hash_create("small", NULL);
}

static void end_hash(void *table)
{
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
}

static void *make_ids(void)
{
    return prudence_id_table_create("small", NULL);
}

static void end_ids(void *table)
{
    assert_int_equal(prudence_id_table_destroy(table, NULL, NULL), 0);
}

static void *make_map(void)
{
    return prudence_map_create("small", NULL);
}

static void end_map(void *map)
{
    assert_int_equal(prudence_map_destroy(map, NULL, NULL), 0);
}

static void *make_hash_values(void)
{
    struct prudence_hash_values *table = prudence_hash_values_create("small", NULL);

    assert_int_equal(prudence_hash_values_put(table, 1, &value, NULL), 0);
    return table;
}

static void end_hash_values(void *table)
{
    assert_int_equal(prudence_hash_values_destroy(table, no_value, NULL), 0);
}

static void *make_map_values(void)
{
    const struct prudence_map_values_attr attr = {.size = sizeof attr,
                                                  .flags = PRUDENCE_MAP_VALUES_BYTES};
    struct prudence_map_values *map = prudence_map_values_create("small", &attr);

    assert_int_equal(prudence_map_values_put_bytes(map, "key", 3, &value, NULL), 0);
    return map;
}

static void end_map_values(void *map)
{
    assert_int_equal(prudence_map_values_destroy(map, no_value, NULL), 0);
}

static void *make_routes(void)
{
    return prudence_routes_create("small", NULL);
}

static void *make_routes6(void)
{
    const struct prudence_routes_attr attr = {.size = sizeof attr, .family = PRUDENCE_ROUTES_IPV6};

    return prudence_routes_create("small", &attr);
}

static void end_routes(void *table)
{
    assert_int_equal(prudence_routes_destroy(table), 0);
}

/* Returns the resident bytes that are not pages of files. */
static long resident(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long all, pages, of_files;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld %ld", &all, &pages, &of_files), 3);
    fclose(file);
    return (pages - of_files) * (long)os_page_size;
}

/* The counters of tables for each CPU come on top of `most` bytes. Two rounds, because memory that
 * stays is taken again by the next tables. */
static void take_at_most(long most, void *(*make)(void), void (*end)(void *))
{
    long before, peak;

    end(make()); /* the library takes what it takes once */
    before = resident();
    if (object_counters() > 2)
        most += (long)((object_counters() - 2) * sizeof(struct object_counter));
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < TABLES; i++) {
            tables[i] = make();
            assert_non_null(tables[i]);
        }
        peak = resident() - before;
        assert_in_range(peak, 1, TABLES * most);
        for (unsigned i = 0; i < TABLES; i++)
            end(tables[i]);
        assert_true(resident() - before <= peak / 10);
    }
}

TEST(hash)
{
    take_at_most(1536, make_hash, end_hash);
}

TEST(identifiers)
{
    take_at_most(1536, make_ids, end_ids);
}

TEST(map)
{
    take_at_most(1536, make_map, end_map);
}

TEST(hash_values)
{
    take_at_most(3072, make_hash_values, end_hash_values);
}

TEST(map_values)
{
    take_at_most(3072, make_map_values, end_map_values);
}

TEST(routes)
{
    take_at_most(6144, make_routes, end_routes);
    take_at_most(6144, make_routes6, end_routes);
}

SUITE()
