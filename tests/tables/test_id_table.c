/* SPDX-License-Identifier: MIT */
/*
 * Tables of objects by number, beyond the contract of all tables (test_contract.c): which numbers
 * are free, growth under a reader of the old array, and latent arrays.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"
#include "support/updates.h"

#include <prudence/id_table.h>

#include "tables/free_ids.h"
#include "tables/views.h"

static char objects[1000];

TEST(identifiers_are_below_the_most)
{
    struct prudence_id_table_attr attr = {.size = sizeof attr};
    uint32_t id;

    for (attr.ids_most = 1; attr.ids_most < 700; attr.ids_most += 63) {
        struct prudence_id_table *table = prudence_id_table_create("test", &attr);

        for (uint32_t i = 0; i < attr.ids_most; i++) {
            assert_int_equal(prudence_id_table_add(table, &objects[i], &id), 0);
            assert_int_equal(id, i);
        }
        assert_int_equal(prudence_id_table_add(table, objects, &id), ENOSPC);
        assert_int_equal(prudence_id_table_add(table, objects, NULL), EINVAL);
        assert_int_equal(prudence_id_table_count(table), attr.ids_most);
        for (uint32_t i = 0; i < attr.ids_most; i++)
            assert_ptr_equal(ids_erase_found(table, i), &objects[i]);
        assert_null(ids_erase_found(table, 0));
        assert_int_equal(prudence_id_table_destroy(table, NULL, NULL), 0);
    }
}

TEST(numbers_of_every_size_of_map)
{
    for (unsigned order = 6; order <= 19; order++) {
        struct free_ids ids, larger;
        uint64_t id;

        assert_true(free_ids_make(&ids, order));
        for (uint64_t i = 0; i < UINT64_C(1) << order; i++) {
            assert_true(free_ids_lowest(&ids, &id));
            assert_int_equal(id, i);
            free_ids_take(&ids, id);
        }
        assert_false(free_ids_lowest(&ids, &id));
        assert_true(free_ids_make(&larger, order + 1));
        free_ids_copy(&larger, &ids);
        assert_true(free_ids_lowest(&larger, &id));
        assert_int_equal(id, UINT64_C(1) << order);
        for (uint64_t i = UINT64_C(1) << order; i-- > 0;) {
            if (i % 3)
                continue;
            free_ids_give(&larger, i);
            assert_true(free_ids_lowest(&larger, &id));
            assert_int_equal(id, i);
        }
        free_ids_unmake(&larger);
        free_ids_unmake(&ids);
    }
}

/* A reader of the old array finds everything that was in it; the array is latent until the
 * reader leaves. */
TEST(old_arrays_stay_for_their_readers)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_id_table_attr attr = {.size = sizeof attr, .domain = domain, .ids = 512};
    struct prudence_id_table *table = prudence_id_table_create("test", &attr);
    struct prudence_id_table before = *table;
    struct prudence_id_table_stats stats;
    uint32_t id;

    for (uint32_t i = 0; i < 512; i++)
        assert_int_equal(prudence_id_table_add(table, &objects[i], &id), 0);
    assert_ptr_equal(before.view, table->view);
    assert_int_equal(prudence_id_table_add(table, &objects[512], &id), 0);
    assert_ptr_not_equal(before.view, table->view);
    for (uint32_t i = 0; i < 512; i++)
        assert_ptr_equal(prudence_id_table_lookup(&before, i), &objects[i]);
    assert_null(prudence_id_table_lookup(&before, 512));
    for (uint32_t i = 0; i < 513; i++)
        assert_ptr_equal(prudence_id_table_lookup(table, i), &objects[i]);
    assert_int_equal(prudence_id_table_stats(table, &stats), 0);
    assert_int_equal(stats.objects, 513);
    assert_int_equal(stats.slots, 1024);
    assert_int_equal(stats.grows, 1);
    assert_int_equal(stats.bytes_latent, round_up(4096, os_page_size));
    assert_true(stats.bytes_live > 8192);
    all_readers_leave(domain);
    assert_int_equal(prudence_id_table_stats(table, &stats), 0);
    assert_int_equal(stats.bytes_latent, 0);
    for (uint32_t i = 0; i < 513; i++)
        prudence_id_table_erase(table, i, NULL);
    assert_int_equal(prudence_id_table_destroy(table, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

SUITE(pin_thread())
