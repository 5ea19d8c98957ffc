/* SPDX-License-Identifier: MIT */
/*
 * Tables of objects by number: random operations beside a model, growth under a reader of the old
 * array, latent arrays, a child, and lookups between any two instructions of an update.
 *
 * ctest: not-with thread (one thread)
 */
#define _GNU_SOURCE
#include "support/slab_test.h"
#include "support/updates.h"

#include <prudence/id_table.h>

#include <unistd.h>

#include "support/step.h"
#include "support/threads.h"
#include "tables/free_ids.h"
#include "tables/views.h"

#define IDS 20000u

static char objects[IDS + 1];
static void *model[IDS]; /* by number */

static void check_all(struct prudence_id_table *table)
{
    struct prudence_id_table_walk walk;
    uint32_t last = 0;
    uint64_t found = 0, there = 0;
    void *object;

    prudence_id_table_for_each(&walk, table, object)
    {
        assert_ptr_equal(object, model[walk.id]);
        assert_true(!found || walk.id > last);
        last = walk.id;
        found++;
    }
    assert_null(prudence_id_table_next(&walk)); /* at the end it stays there */
    object = prudence_id_table_first_from(&walk, table, last);
    assert_true(!found || (object == model[last] && walk.id == last));
    for (uint32_t id = 0; id < IDS; id++) {
        assert_ptr_equal(prudence_id_table_lookup(table, id), model[id]);
        there += model[id] != NULL;
    }
    assert_int_equal(found, there);
    assert_int_equal(prudence_id_table_count(table), there);
    assert_null(prudence_id_table_lookup(table, UINT32_MAX));
    assert_null(prudence_id_table_lookup(table, 1u << 30));
}

static uint32_t lowest_free(void)
{
    uint32_t id = 0;

    while (id < IDS && model[id])
        id++;
    return id;
}

TEST(it_answers_as_the_model_does)
{
    struct prudence_id_table *table = prudence_id_table_create("test", NULL);
    uint64_t random = 4711;

    memset(model, 0, sizeof model);
    for (unsigned step = 0; step < 60000; step++) {
        uint32_t id;
        void *object;

        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        id = (uint32_t)(random >> 33) % 6000;
        object = &objects[1 + step % IDS];
        switch ((random >> 20) % (step % 20000 < 12000 ? 8 : 5)) {
        case 0:
        case 1:
            assert_ptr_equal(ids_erase_found(table, id), model[id]);
            model[id] = NULL;
            break;
        case 2:
            assert_ptr_equal(ids_replace_found(table, id, object), model[id]);
            model[id] = model[id] ? object : NULL;
            break;
        default:
            assert_int_equal(prudence_id_table_add(table, object, &id), 0);
            if (step % 16 == 0)
                assert_int_equal(id, lowest_free());
            assert_null(model[id]);
            model[id] = object;
        }
        if (step % 2000 == 0)
            check_all(table);
    }
    check_all(table);
    for (uint32_t id = 0; id < IDS; id++)
        assert_ptr_equal(ids_erase_found(table, id), model[id]);
    assert_int_equal(prudence_id_table_destroy(table, NULL, NULL), 0);
}

TEST(bad_arguments_are_refused)
{
    struct prudence_id_table *table = prudence_id_table_create("test", NULL);
    void *old = &old;
    uint32_t id = 77;

    assert_int_equal(prudence_id_table_add(table, NULL, &id), EINVAL);
    assert_int_equal(prudence_id_table_add(table, objects, NULL), EINVAL);
    assert_int_equal(prudence_id_table_count(table), 0);
    assert_int_equal(prudence_id_table_replace(table, 0, NULL, &old), EINVAL);
    assert_null(old);
    assert_int_equal(id, 77);
    assert_int_equal(prudence_id_table_add(table, objects, &id), 0);
    assert_int_equal(prudence_id_table_destroy(table, NULL, NULL), EBUSY);
    assert_ptr_equal(ids_erase_found(table, id), objects);
    assert_null(ids_erase_found(table, id));
    prudence_read_lock();
    assert_int_equal(prudence_id_table_destroy(table, NULL, NULL), EDEADLK);
    prudence_read_unlock();
    assert_int_equal(prudence_id_table_destroy(table, NULL, NULL), 0);
}

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
        assert_int_equal(prudence_id_table_count(table), attr.ids_most);
        for (uint32_t i = 0; i < attr.ids_most; i++)
            assert_ptr_equal(ids_erase_found(table, i), &objects[i]);
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
    for (unsigned i = 0; i < 4; i++) {
        prudence_trim();
        prudence_manual_advance(domain);
    }
    prudence_trim();
    assert_int_equal(prudence_id_table_stats(table, &stats), 0);
    assert_int_equal(stats.bytes_latent, 0);
    for (uint32_t i = 0; i < 513; i++)
        prudence_id_table_erase(table, i, NULL);
    assert_int_equal(prudence_id_table_destroy(table, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* ------------------------------------------------------------------------------------- the rest */

TEST(a_child_goes_on)
{
    struct prudence_id_table *table = prudence_id_table_create("test", NULL);
    uint32_t id;
    pid_t child;

    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(prudence_id_table_add(table, &objects[i], &id), 0);
    child = fork();
    for (uint32_t i = 1000; i < 3000; i++) {
        assert_int_equal(prudence_id_table_add(table, &objects[i], &id), 0);
        assert_ptr_equal(prudence_id_table_lookup(table, i - 900), &objects[i - 900]);
    }
    for (uint32_t i = 0; i < 3000; i++)
        assert_ptr_equal(ids_erase_found(table, i), &objects[i]);
    assert_int_equal(prudence_id_table_destroy(table, NULL, NULL), 0);
    if (!child)
        _exit(0);
    assert_int_equal(status_of(child), 0);
}

#if STEP_POSSIBLE

static struct prudence_id_table *stepped;
static unsigned looks;

static void look(const greg_t *registers)
{
    for (uint32_t i = 0; i < 64; i++)
        if (prudence_id_table_lookup(stepped, i) != &objects[i])
            fail_msg("object %u is not found", i);
    for (uint32_t i = 64; i < 600; i++) {
        const void *found = prudence_id_table_lookup(stepped, i);

        if (found && found != &objects[i])
            fail_msg("another object is found for %u", i);
    }
    looks++;
}

static void insert_one(void *argument)
{
    assert_int_equal(prudence_id_table_add(stepped, &objects[64], argument), 0);
}

/* During growth no object is missing, and no slot of the new array is visible before it is
 * filled. */
TEST(between_any_two_instructions)
{
    uint32_t id;

    stepped = prudence_id_table_create("test", NULL);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(prudence_id_table_add(stepped, &objects[i], &id), 0);
    step_through(insert_one, &id, look);
    assert_int_equal(id, 64);
    assert_true(looks > 500);
    for (uint32_t i = 0; i < 65; i++)
        prudence_id_table_erase(stepped, i, NULL);
    assert_int_equal(prudence_id_table_destroy(stepped, NULL, NULL), 0);
}

#endif

/* Steps would restart a sequence for ever. */
SUITE(prudence_option_set("rseq", "0"), pin_thread())
