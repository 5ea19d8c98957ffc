/* SPDX-License-Identifier: MIT */
/*
 * Between any two instructions of a rename or an exchange, a new reader finds the object under one
 * of its names: never under neither, never under both, and never again under the old one after the
 * new one. A reader that is stopped anywhere has a valid result, whatever is renamed and resized.
 *
 * ctest: cost 10
 * ctest: needs steps
 */
#define _GNU_SOURCE
#include "tables/hash_resize.h"
#include "support/name_test.h"
#include "support/deep.h"
#include "support/step.h"

#define OTHERS 6
#define OLD    100 /* keys */
#define NEW    101

static struct prudence_hash *from, *to;
static struct named others[2 * OTHERS], old, fresh, victim, fresh_victim;
static uint64_t looks;

/* Places of the names: in different chains, in one, beside each other, or after each other with
 * one hash. */
static uint64_t hash_of_old, hash_of_new;

static const uint64_t places[][2] = {
    {UINT64_C(1) << 60, UINT64_C(9) << 60}, {UINT64_C(9) << 60, UINT64_C(1) << 60},
    {UINT64_C(5) << 50, UINT64_C(6) << 50}, {UINT64_C(6) << 50, UINT64_C(5) << 50},
    {UINT64_C(7) << 50, UINT64_C(7) << 50},
};
#define PLACES (sizeof places / sizeof places[0])

static void begin(unsigned place, bool one_table)
{
    from = table_of_domain(NULL, 64, 0, PRUDENCE_HASH_FIXED);
    to = one_table ? from : table_of_domain(NULL, 64, 0, PRUDENCE_HASH_FIXED);
    hash_of_old = hash_for(places[place][0]);
    hash_of_new = hash_for(places[place][1]);
    for (unsigned i = 0; i < OTHERS; i++) {
        prudence_hash_add_duplicate(from, hash_of_old, &entry_set(&others[i], i, 0)->name.node);
        prudence_hash_add_duplicate(to, hash_of_new,
                                    &entry_set(&others[OTHERS + i], i, 0)->name.node);
        if (i == OTHERS / 2)
            prudence_hash_add_duplicate(from, hash_of_old, &entry_set(&old, OLD, 1)->name.node);
    }
    entry_set(&fresh, NEW, 1);
    looks = 0;
}

static void add_victim(void)
{
    prudence_hash_add_duplicate(to, hash_of_new, &entry_set(&victim, NEW, 2)->name.node);
}

static void end(void)
{
    assert_true(looks > 10);
    remove_all(from);
    assert_int_equal(prudence_hash_destroy(from, NULL, NULL), 0);
    if (to != from) {
        remove_all(to);
        assert_int_equal(prudence_hash_destroy(to, NULL, NULL), 0);
    }
}

/* Looks up in both ways; lookups beside a resize take the second. */
static unsigned object_under(const struct prudence_hash *table, uint64_t hash, uint64_t key)
{
    const struct prudence_hash_name_query_ query = {entry_has_key, &key};
    const struct named *entry = find(table, hash, key);
    struct prudence_hash_node *node =
        prudence_hash_lookup_slow(table, hash, prudence_hash_name_matches_, &query);

    if (node != (entry ? &entry->name.node : NULL))
        fail_msg("two lookups find different names");
    return entry ? entry->object : 0;
}

/* ---------------------------------------------------------- a reader at every step of an update */

static bool renamed; /* as seen by readers */

static void look(const greg_t *registers)
{
    unsigned at_new = object_under(to, hash_of_new, NEW);
    unsigned at_old = object_under(from, hash_of_old, OLD);
    unsigned before = victim.object;

    looks++;
    if (at_new == 1 && at_old == 0)
        renamed = true;
    else if (at_new != before || at_old != 1 || renamed)
        fail_msg("object 1 is under the old name: %u, under the new: %u, and was there: %u", at_old,
                 at_new, renamed);
    for (unsigned i = 0; i < OTHERS; i++)
        if (!find(from, hash_of_old, i) || !find(to, hash_of_new, i))
            fail_msg("another name is not found");
}

static void rename_it(void *argument)
{
    static const uint64_t key = NEW;
    struct prudence_hash_name *replaced;

    assert_int_equal(prudence_hash_rename_replace(from, &old.name, to, hash_of_new, entry_has_key,
                                                  &key, &fresh.name, &replaced),
                     0);
    assert_ptr_equal(entry_of(replaced), victim.object ? &victim : NULL);
}

static void step_through_rename(unsigned place, bool one_table, bool with_victim)
{
    begin(place, one_table);
    memset(&victim, 0, sizeof victim);
    if (with_victim)
        add_victim();
    renamed = false;
    step_through(rename_it, NULL, look);
    assert_true(renamed);
    check_chains(from);
    check_chains(to);
    end();
}

TEST(at_every_instruction_one_name_is_found)
{
    for (unsigned i = 0; i < PLACES * 4; i++)
        step_through_rename(i / 4, i & 1, i & 2);
}

static void look_at_exchange(const greg_t *registers)
{
    unsigned at_new = object_under(to, hash_of_new, NEW);
    unsigned at_old = object_under(from, hash_of_old, OLD);

    looks++;
    if (at_new == 1 && at_old == 2)
        renamed = true;
    else if (at_new != 2 || at_old != 1 || renamed)
        fail_msg("the names lead to %u and %u, and were exchanged: %u", at_old, at_new, renamed);
}

static void exchange(void *argument)
{
    assert_int_equal(
        prudence_hash_exchange(from, &old.name, &fresh.name, to, &victim.name, &fresh_victim.name),
        0);
}

TEST(at_every_instruction_both_or_neither_is_exchanged)
{
    for (unsigned i = 0; i < PLACES * 2; i++) {
        begin(i / 2, i & 1);
        add_victim();
        entry_set(&fresh, OLD, 2);
        entry_set(&fresh_victim, NEW, 1);
        renamed = false;
        step_through(exchange, NULL, look_at_exchange);
        assert_true(renamed);
        check_chains(from);
        check_chains(to);
        end();
    }
}

/* ---------------------------------------------------------- an update at every step of a reader */

static unsigned here, at_most;
static bool resizes;
static bool wants_new;
static const struct named *found;

static void happen(const greg_t *registers)
{
    if (looks++ != here)
        return;
    if (resizes)
        assert_int_equal(prudence_hash_resize(to, 1024), 0);
    rename_it(NULL);
    if (resizes)
        assert_int_equal(prudence_hash_resize(from, 512), 0);
    step_enough = true;
}

static void look_for_it(void *argument)
{
    found = wants_new ? find(to, hash_of_new, NEW) : find(from, hash_of_old, OLD);
}

/* The reader began before the rename, so it may see the old state or the new one. An object that
 * has the new name is found in both. */
static void check_found(bool happened)
{
    if (!wants_new)
        assert_true(found == &old || (happened && !found));
    else if (victim.object)
        assert_true(found == &victim || (happened && found == &fresh));
    else
        assert_true(!found || (happened && found == &fresh));
}

static void stop_reader_everywhere(unsigned place, bool one_table, bool with_victim)
{
    const unsigned stride = deep_stride(5);

    for (here = place % stride;; here += stride) {
        begin(place, one_table);
        memset(&victim, 0, sizeof victim);
        if (with_victim)
            add_victim();
        found = NULL;
        step_through(look_for_it, NULL, happen);
        check_found(looks > here);
        at_most = here;
        if (looks <= here)
            break;
        looks = 100;
        end();
    }
    looks = 100;
    assert_true(at_most > 10);
    end();
}

TEST(a_lookup_that_is_stopped_anywhere_finds_what_it_may)
{
    for (unsigned i = 0; i < PLACES * 16; i++) {
        wants_new = i & 1;
        resizes = i & 2;
        stop_reader_everywhere(i / 16, i & 4, i & 8);
    }
}

/* ------------------------------------------------------------------------------ beside a resize */

/* A rename that finds its chains, or one of them, not moved moves them; at every instruction the
 * object is found under one name. */
static void at_every_step_of_a_resize(unsigned place, unsigned order)
{
    for (unsigned steps = 0; steps < 12; steps += 3) {
        begin(place, true);
        memset(&victim, 0, sizeof victim);
        if (order == 6)
            assert_int_equal(prudence_hash_resize(from, 512), 0);
        assert_true(hash_resize_begin(hash_of(from), from->view, order));
        while (!hash_of(from)->from)
            hash_resize_step(hash_of(from));
        for (unsigned i = 0; i < steps; i++)
            hash_resize_step(hash_of(from));
        renamed = false;
        step_through(rename_it, NULL, look);
        assert_true(renamed);
        assert_int_equal(prudence_hash_resize(from, UINT64_C(1) << order), 0);
        check_chains(from);
        end();
    }
}

TEST(beside_a_resize_as_well)
{
    for (unsigned i = 0; i < PLACES; i++) {
        at_every_step_of_a_resize(i, 9);
        at_every_step_of_a_resize(i, 6);
    }
}

/* --------------------------------------------------------------------------- the order of locks */

static const uintptr_t *locked_first;

static void look_at_lock(const struct prudence_hash *table, uint64_t hash)
{
    const uintptr_t *bucket =
        &view_words(table->view)[hash_index(prudence_hash_spread_(hash), view_order(table->view))];

    if (!locked_first && *bucket & HASH_LOCKED)
        locked_first = bucket;
}

static void look_at_locks(const greg_t *registers)
{
    looks++;
    look_at_lock(from, hash_of_old);
    look_at_lock(to, hash_of_new);
}

static void rename_it_back(void *argument)
{
    static const uint64_t key = OLD;

    assert_int_equal(prudence_hash_rename(to, &fresh.name, from, hash_of_old, entry_has_key, &key,
                                          &fresh_victim.name),
                     0);
}

/* Of two chains, every rename locks the same one first. */
TEST(locks_are_taken_in_one_order)
{
    for (unsigned i = 0; i < 4; i++) {
        const uintptr_t *before;

        begin(i / 2, i % 2);
        entry_set(&fresh_victim, OLD, 1);
        locked_first = NULL;
        step_through(rename_it, NULL, look_at_locks);
        before = locked_first;
        assert_non_null(before);
        locked_first = NULL;
        step_through(rename_it_back, NULL, look_at_locks);
        assert_ptr_equal(locked_first, before);
        end();
    }
}

/* Steps would restart a sequence for ever. */
SUITE(prudence_option_set("rseq", "0"))
