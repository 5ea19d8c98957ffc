/* SPDX-License-Identifier: MIT */
/*
 * Between any two instructions of an update or of a resize, readers find every object in the table,
 * and no other. The update runs under the processor's trap flag (support/step.h), and the reader
 * looks in the trap.
 *
 * ctest: needs steps
 */
#define _GNU_SOURCE
#include "tables/hash_move.h"
#include "tables/hash_resize.h"
#include "support/hash_test.h"
#include "support/updates.h"
#include "support/deep.h"
#include "support/step.h"

#define ITEMS 40

static struct item items[ITEMS], extra[2];
static struct prudence_hash *table;
static uint64_t steps, looks;
static uint64_t either = UINT64_MAX; /* the key that is being added, replaced or removed */

static uint64_t hash_here(uint64_t key)
{
    uint64_t bits = prudence_hash_mix(key) & 0x1ff & ~UINT64_C(0x38);

    return hash_for((bits >> 6 | bits << 3)
                    << 55); /* puts eight times as many in a bucket as elsewhere */
}

static void look_at_all(const greg_t *registers)
{
    struct prudence_hash_walk walk;
    struct prudence_hash_node *node;
    unsigned found = 0;

    if (++steps % 3) /* enough, because the state between two stores is seen several times */
        return;
    looks++;
    for (unsigned i = 0; i < ITEMS; i++) {
        const struct item *at = look_up(table, hash_here(i), i);

        items[i].visits = 0;
        if (i != either && at != &items[i])
            fail_msg("object %u is not found", i);
        if (at && at->key != i)
            fail_msg("another object is found");
    }
    if (look_up(table, hash_here(ITEMS + 5), ITEMS + 5))
        fail_msg("an object is found that is not there");
    prudence_hash_for_each(&walk, table, node) if (item_of(node)->key != either)
    {
        found++;
        if (item_of(node)->visits++)
            fail_msg("a walk finds an object twice");
    }
    if (found != ITEMS - (either < ITEMS))
        fail_msg("a walk finds %u of %u objects", found, ITEMS);
}

static void begin_table(unsigned order)
{
    table = table_of_domain(NULL, 64, 0, PRUDENCE_HASH_FIXED);
    assert_int_equal(prudence_hash_resize(table, UINT64_C(1) << order), 0);
    for (unsigned i = 0; i < ITEMS; i++) {
        items[i].key = i;
        prudence_hash_add_duplicate(table, hash_here(i), &items[i].node);
    }
    steps = looks = 0;
    either = UINT64_MAX;
}

static void end_table(void)
{
    assert_true(looks > 20);
    check_chains(table);
    remove_all(table);
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
}

static unsigned order_wanted;

/* Moves all groups that contain objects; the others are alike. */
static void move_all(void *argument)
{
    struct hash_table *inside = hash_of(table);

    for (unsigned i = 0; i < ITEMS; i++)
        hash_move(inside->from, table->view,
                  hash_index(prudence_hash_spread_(hash_here(i)),
                             (unsigned)min_size(view_order(inside->from), view_order(table->view))),
                  false);
}

static void resize(unsigned from, unsigned to)
{
    begin_table(from);
    assert_true(hash_resize_begin(hash_of(table), table->view, to));
    while (!hash_of(table)->from)
        hash_resize_step(hash_of(table));
    order_wanted = to;
    step_through(move_all, NULL, look_at_all);
    assert_int_equal(prudence_hash_resize(table, UINT64_C(1) << to), 0);
    end_table();
}

static void publish_all(void *argument)
{
    assert_int_equal(prudence_hash_resize(table, UINT64_C(1) << order_wanted), 0);
}

TEST(growing)
{
    resize(6, 9);
    resize(9, 10);
}

TEST(shrinking)
{
    resize(9, 6);
    resize(10, 9);
}

/* Includes the publication of the array, and the end; looks between all stores, but not in all
 * groups. */
TEST(all_of_a_resize)
{
    begin_table(6);
    order_wanted = 9;
    step_through(publish_all, NULL, look_at_all);
    order_wanted = 6;
    step_through(publish_all, NULL, look_at_all);
    end_table();
}

static void update(void *argument)
{
    static const uint64_t key = 7;

    assert_int_equal(prudence_hash_remove(table, &items[key].node), 0);
    assert_null(hash_add_found(table, hash_here(key), item_has_key, &key, &items[key].node));
    extra[0].key = extra[1].key = key;
    assert_int_equal(prudence_hash_replace(table, &items[key].node, &extra[0].node), 0);
    assert_ptr_equal(hash_put_found(table, hash_here(key), item_has_key, &key, &extra[1].node),
                     &extra[0].node);
    prudence_hash_add_duplicate(table, hash_here(key), &items[key].node);
    assert_int_equal(prudence_hash_remove(table, &extra[1].node), 0);
}

TEST(updates)
{
    begin_table(6);
    either = 7;
    step_through(update, NULL, look_at_all);
    either = UINT64_MAX;
    end_table();
}

/* While an object is replaced, readers find the old one or the new one. */
static void replace(void *argument)
{
    assert_int_equal(prudence_hash_replace(table, &items[7].node, &extra[0].node), 0);
}

static void look_for_either(const greg_t *registers)
{
    const struct item *at = look_up(table, hash_here(7), 7);

    if (at != &items[7] && at != &extra[0])
        fail_msg("neither of both is found");
    looks++;
}

TEST(replacing)
{
    begin_table(6);
    extra[0].key = 7;
    step_through(replace, NULL, look_for_either);
    end_table();
}

/* The first update of a group that has not moved moves it. */
TEST(update_beside_a_resize)
{
    begin_table(6);
    assert_true(hash_resize_begin(hash_of(table), table->view, 9));
    while (!hash_of(table)->from)
        hash_resize_step(hash_of(table));
    either = 7;
    step_through(update, NULL, look_at_all);
    either = UINT64_MAX;
    end_table();
}

/* ---------------------------------------------------- the reader is stopped, and all is resized */

static unsigned from_order, to_order, here;
static bool begun_before;
static const struct item *found_item;
static uint64_t wanted_key;

static void begin_resize(void)
{
    assert_true(hash_resize_begin(hash_of(table), table->view, to_order));
    while (!hash_of(table)->from)
        hash_resize_step(hash_of(table));
}

static void resize_here(const greg_t *registers)
{
    if (looks++ != here)
        return;
    if (!begun_before)
        begin_resize();
    while (hash_of(table)->phase != HASH_IDLE)
        hash_resize_step(hash_of(table));
    step_enough = true;
}

static void look_for_it(void *argument)
{
    found_item = look_up(table, hash_here(wanted_key), wanted_key);
}

static void stop_lookups(unsigned from, unsigned to, bool begun)
{
    const unsigned stride = deep_stride(5);

    begin_table(from);
    from_order = from;
    to_order = to;
    begun_before = begun;
    for (wanted_key = 0; wanted_key < ITEMS; wanted_key += 3) {
        for (here = wanted_key % stride;; here += stride) {
            looks = 0;
            if (begun)
                begin_resize();
            step_through(look_for_it, NULL, resize_here);
            assert_ptr_equal(found_item, &items[wanted_key]);
            assert_int_equal(prudence_hash_resize(table, UINT64_C(1) << from_order), 0);
            if (looks <= here)
                break;
        }
    }
    looks = here;
    end_table();
}

/* Stops a lookup anywhere, also in the old array, and runs a whole resize there, or the rest of
 * one. */
TEST(a_lookup_may_be_stopped_anywhere)
{
    for (unsigned begun = 0; begun < 2; begun++) {
        stop_lookups(6, 9, begun);
        stop_lookups(9, 6, begun);
        stop_lookups(9, 10, begun);
    }
}

/* Steps would restart a sequence for ever. */
SUITE(prudence_option_set("rseq", "0"))
