/* SPDX-License-Identifier: MIT */
/*
 * A reader stops at each place where it can, while a resize takes each of its steps. Lookups and
 * walks that began before still find everything, walks exactly once. The reader is stopped in
 * `match` (a lookup), or between two objects (a walk). Uses a manual domain, so that no array is
 * reused under the reader. (Of those that begin in the middle, the cases "hash" of
 * tests/model/source/structure_cases.c try every order.)
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "tables/hash_move.h"
#include "tables/hash_resize.h"
#include "support/hash_test.h"

#define ITEMS 600

static struct item items[ITEMS];
static struct prudence_hash *table;
static struct prudence_domain *domain;
static unsigned from_order, to_order;

static uint64_t hash_here(uint64_t key)
{
    return hash_for(prudence_hash_mix(key) << 54); /* of 1,024: several in each bucket */
}

static uint64_t spread_here(uint64_t key)
{
    return prudence_hash_spread_(hash_here(key));
}

static void begin_table(unsigned from, unsigned to)
{
    from_order = from;
    to_order = to;
    domain = manual_domain();
    table = table_of_domain(domain, UINT64_C(1) << 6, 0, PRUDENCE_HASH_FIXED);
    assert_int_equal(prudence_hash_resize(table, UINT64_C(1) << from), 0);
    memset(items, 0, sizeof items);
    for (unsigned i = 0; i < ITEMS; i++) {
        items[i].key = i;
        prudence_hash_add_duplicate(table, hash_here(i), &items[i].node);
    }
}

static void end_table(void)
{
    remove_all(table);
    all_readers_leave(domain);
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* Moves some of the groups, in an order other than the cursor's. */
static void move_groups(unsigned first, unsigned stride)
{
    struct hash_table *inside = hash_of(table);
    uint64_t groups = UINT64_C(1) << (from_order < to_order ? from_order : to_order);

    for (uint64_t group = first; inside->from && group < groups; group += stride)
        hash_move(inside->from, table->view, group, false);
}

static void start_resize(void)
{
    struct hash_table *inside = hash_of(table);

    assert_true(hash_resize_begin(inside, table->view, to_order));
    while (!inside->from)
        hash_resize_step(inside);
}

static void finish_resize(void)
{
    while (hash_of(table)->phase != HASH_IDLE)
        hash_resize_step(hash_of(table));
}

/* Event that happens while a reader is at place number `here`. */
static unsigned plan, places, here;
#define PLANS 6

static void happen(void)
{
    if (places++ != here)
        return;
    start_resize();
    if (plan >= 4) { /* to the new size, back or further, and to the new size again */
        unsigned in_between =
            plan == 4 ? from_order : 2 + (from_order > to_order ? from_order : to_order);

        finish_resize();
        assert_int_equal(prudence_hash_resize(table, UINT64_C(1) << in_between), 0);
        assert_int_equal(prudence_hash_resize(table, UINT64_C(1) << to_order), 0);
        return;
    }
    if (plan > 0)
        move_groups(0, 2);
    if (plan > 1)
        move_groups(1, 2);
    if (plan > 2)
        finish_resize();
}

static void after_it(void)
{
    assert_int_equal(prudence_hash_resize(table, UINT64_C(1) << from_order), 0);
    check_chains(table);
    prudence_manual_advance(domain);
    prudence_manual_advance(domain);
}

/* -------------------------------------------------------------------------------------- lookups */

static bool match_and_happen(const struct prudence_hash_node *node, const void *key)
{
    happen();
    return item_has_key(node, key);
}

/* Looks for an absent key whose hash others have, so it is compared with all of these. */
static void look_for(uint64_t key, uint64_t hash)
{
    for (plan = 0; plan < PLANS; plan++) {
        for (here = 0;; here++) {
            struct item *found;

            places = 0;
            found = item_of(prudence_hash_lookup(table, hash, match_and_happen, &key));
            assert_ptr_equal(found, key < ITEMS ? &items[key] : NULL);
            if (places <= here)
                break;
            after_it();
        }
    }
}

static void lookups(unsigned from, unsigned to)
{
    begin_table(from, to);
    for (uint64_t key = 0; key < ITEMS; key += 7) {
        look_for(key, hash_here(key));
        look_for(key + ITEMS, hash_here(key));
    }
    end_table();
}

/* ---------------------------------------------------------------------------------------- walks */

static void walk_and_happen(bool removing)
{
    struct prudence_hash_walk walk;
    struct prudence_hash_node *node;

    for (unsigned i = 0; i < ITEMS; i++)
        items[i].visits = 0;
    prudence_hash_for_each(&walk, table, node)
    {
        item_of(node)->visits++;
        happen();
        if (removing && item_of(node)->key % 3 == 0)
            assert_int_equal(prudence_hash_remove(table, node), 0);
    }
    for (unsigned i = 0; i < ITEMS; i++)
        if (items[i].visits != 1)
            fail_msg("object %u was visited %u times (plan %u, place %u)", i, items[i].visits, plan,
                     here);
}

static void walks(unsigned from, unsigned to, bool removing)
{
    begin_table(from, to);
    for (plan = 0; plan < PLANS; plan++) {
        for (here = 0; here < ITEMS; here += 3) {
            places = 0;
            walk_and_happen(removing);
            after_it();
            for (unsigned i = 0; removing && i < ITEMS; i += 3)
                prudence_hash_add_duplicate(table, hash_here(i), &items[i].node);
        }
    }
    end_table();
}

/* Resizes between neighbouring and distant sizes, in both directions. */
static const unsigned ways[][2] = {{6, 9}, {9, 6}, {9, 10}, {10, 9}, {9, 12}, {12, 9}, {12, 6}};
#define WAYS (sizeof ways / sizeof ways[0])

TEST(lookups_find_their_object)
{
    for (unsigned i = 0; i < WAYS; i++)
        lookups(ways[i][0], ways[i][1]);
}

TEST(walks_find_every_object_once)
{
    for (unsigned i = 0; i < WAYS; i++)
        walks(ways[i][0], ways[i][1], false);
}

TEST(walks_may_remove_what_they_find)
{
    for (unsigned i = 0; i < WAYS; i++)
        walks(ways[i][0], ways[i][1], true);
}

/* A reader at an object that is removed, while all is moved, continues to the objects after it. */
TEST(a_removed_object_leads_on)
{
    for (unsigned i = 0; i < WAYS; i++) {
        begin_table(ways[i][0], ways[i][1]);
        for (uint64_t key = 0; key < ITEMS; key += 5) {
            uint64_t hash = hash_here(key);
            uintptr_t first = hash_link_of(
                view_words(table->view)[hash_index(spread_here(key), view_order(table->view))]);
            struct item *at = item_of(prudence_hash_node_(first));
            uintptr_t link;
            struct prudence_hash_node *node;

            if (at == &items[key])
                continue;
            assert_int_equal(prudence_hash_remove(table, &at->node), 0);
            assert_int_equal(prudence_hash_resize(table, UINT64_C(1) << to_order), 0);
            link = at->node.next;
            node = prudence_hash_search_(&link, spread_here(key), item_has_key, &key);
            if (!node && !is_end_of(link, from_order))
                node = prudence_hash_lookup_slow(table, hash, item_has_key, &key);
            assert_ptr_equal(item_of(node), &items[key]);
            prudence_hash_add_duplicate(table, hash_here(at->key), &at->node);
            after_it();
        }
        end_table();
    }
}

SUITE()
