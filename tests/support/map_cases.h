/* SPDX-License-Identifier: MIT */
/*
 * Cases for tests that read an ordered map, or change one, between any two instructions. In each
 * case some keys stay, and others come and go, so that the updates do everything they can: fill a
 * slot, make nodes for long common prefixes, cut a prefix, append, grow and shrink through all
 * kinds of nodes, replace a node by its only object, join two nodes, unlink a line of nodes. Also
 * the checks of what a concurrent reader may see.
 */
#ifndef TESTS_SUPPORT_MAP_CASES_H
#define TESTS_SUPPORT_MAP_CASES_H

#include "support/map_invariants.h"
#include "tables/keys.h"
#include "tables/kinds.h"

#define MAP_TEST_UNUSED __attribute__((unused))
#define ITEMS_MOST      300

static struct entry items[ITEMS_MOST], twins[ITEMS_MOST];
static bool stays[ITEMS_MOST]; /* by key; all other keys come and go */
static bool there[ITEMS_MOST]; /* keys in the map between two updates */
static struct prudence_map *map;
static unsigned key_count;
static uint64_t looks;
static unsigned moving = ITEMS_MOST; /* the key being added or removed */

/* ---------------------------------------------------------------------------------------- cases */

struct test_case {
    const char *name;
    const char *staying[12], *passing[8]; /* strings */
    unsigned stay, pass;                  /* or numbers of keys that differ in their last byte */
    uint64_t stay_from, pass_from;
    bool everywhere; /* stop searches at each instruction while keys are swapped */
};

static const struct test_case cases[] = {
    {.name = "an empty map", .pass = 1},
    {.name = "beside an object", .stay = 1, .pass = 1, .pass_from = 200},
    {.name = "four to eighteen and back", .stay = 3, .pass = 3, .pass_from = 100},
    {.name = "eighteen to forty and back", .stay = 12, .pass = 5, .pass_from = 64},
    {.name = "forty to ninety and back", .stay = 28, .pass = 5, .pass_from = 100},
    {.name = "ninety to all and back", .stay = 64, .pass = 9, .pass_from = 100},
    {.name = "in the middle of a node", .stay = 3, .pass = 3, .stay_from = 10},
    {.name = "a fork at the first byte", .stay = 2, .pass = 2, .pass_from = 1ull << 60},
    {.name = "a prefix is cut twice", .stay = 2, .pass = 1, .pass_from = 0x400000000000},
    {.name = "two keys far away", .stay = 4, .pass = 2, .pass_from = 0x7700000000},
    {.name = "a line of nodes",
     .staying = {"b"},
     .passing = {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa2"}},
    {.name = "ends",
     .staying = {"", "abc", "abcdefghijklmnopqrstuvw"},
     .passing = {"a", "ab", "abcdefghijk", "abcdefghijklmnopqrstu"}},
    {.name = "a string that begins all others",
     .staying = {"xyz1", "xyz2", "xyz3", "xyz4"},
     .passing = {"xyz", "x", ""}},
    {.name = "a long prefix is cut",
     .staying = {"http://www.example.org/1", "http://www.example.org/2"},
     .passing = {"http://www.example.com/", "http://", "https://www.example.org"}},
    {.name = "a node whose keys all change",
     .staying = {"z"},
     .passing = {"a", "m1", "m2", "m3", "m4"},
     .everywhere = true},
    {.name = "nodes are joined",
     .staying = {"prefix", "prefixed1", "prefixed2"},
     .passing = {"pre", "prefi", "prefixe", "q"}},
};
#define CASES (sizeof cases / sizeof cases[0])

static bool is_string(const struct test_case *at)
{
    return at->passing[0] != NULL;
}

static bool starts_out(const struct test_case *at, unsigned index)
{
    uint64_t number;

    for (unsigned i = 0; is_string(at) && i < 12 && at->staying[i]; i++)
        if (strlen(at->staying[i]) == key_strings[index].length &&
            !memcmp(at->staying[i], key_strings[index].bytes, key_strings[index].length))
            return true;
    if (is_string(at))
        return false;
    number = key_numbers[index];
    return number >= at->stay_from && number < at->stay_from + 2 * at->stay &&
           (number - at->stay_from) % 2 == 0;
}

static void make_keys(const struct test_case *at)
{
    keys_clear();
    tested = &table_kinds[is_string(at) ? TABLE_MAP_BYTES : TABLE_MAP];
    for (unsigned i = 0; i < 12 && at->staying[i]; i++)
        keys_add_string(at->staying[i], strlen(at->staying[i]));
    for (unsigned i = 0; i < 8 && at->passing[i]; i++)
        keys_add_string(at->passing[i], strlen(at->passing[i]));
    for (unsigned i = 0; i < at->stay; i++)
        keys_add_number(at->stay_from + 2 * i);
    for (unsigned i = 0; i < at->pass; i++)
        keys_add_number((at->pass_from | 1) + 2 * i);
    keys_sort();
    key_count = *tested->keys;
    assert_true(key_count <= ITEMS_MOST);
}

MAP_TEST_UNUSED static void begin_case(const struct test_case *at)
{
    make_keys(at);
    map = table_make(tested, NULL);
    memset(there, 0, sizeof there);
    for (unsigned i = 0; i < key_count; i++) {
        stays[i] = starts_out(at, i);
        if (stays[i])
            assert_int_equal(tested->add(map, i, &items[i], NULL), 0);
        there[i] = stays[i];
    }
    prudence_read_lock(); /* registers this thread, which blocks signals, before it is stepped */
    prudence_read_unlock();
    looks = 0;
}

/* Returns the object that was erased, or NULL. */
static struct entry *erase(unsigned key)
{
    struct entry *found = &twins[ITEMS_MOST - 1];
    int error = tested->erase(map, key, &found);

    assert_int_equal(error, found ? 0 : ENOENT);
    return found;
}

MAP_TEST_UNUSED static void end_case(void)
{
    check_map(map, false);
    for (unsigned i = 0; i < key_count; i++)
        assert_ptr_equal(erase(i), stays[i] ? &items[i] : NULL);
    assert_int_equal(prudence_map_destroy(map, NULL, NULL), 0);
}

/* ------------------------------------------------------------------------ what a reader may see */

/* Checks that no key between `from` and `to` that is certainly in the map was passed over. */
static void check_gap(unsigned from, unsigned to, const bool *certain)
{
    for (unsigned i = from; i < to; i++)
        if (certain[i] && i != moving)
            fail_msg("key %u of %u is passed over", i, key_count);
}

static void check_found(const struct entry *found, unsigned index, const bool *possible)
{
    if (found != &items[index] && found != &twins[index])
        fail_msg("another object is found");
    if (!possible[index] && index != moving)
        fail_msg("key %u of %u is found, which is not there", index, key_count);
}

/* Objects that a read found, in order; checked after the read. */
static const struct entry *seen[ITEMS_MOST + 1];
static unsigned seen_count;

static void saw(const struct entry *item)
{
    seen_count = item ? 1 : 0;
    seen[0] = item;
}

static void read_lookup(unsigned index)
{
    saw(tested->get(map, index));
}

static void check_lookup(unsigned index, const bool *certain, const bool *possible)
{
    if (seen_count)
        check_found(seen[0], index, possible);
    else
        check_gap(index, index + 1, certain);
}

static void read_ceiling(unsigned index)
{
    saw(tested->at(table_ceiling(map, index)));
}

static void check_ceiling(unsigned index, const bool *certain, const bool *possible)
{
    check_gap(index, seen_count ? seen[0]->key : key_count, certain);
    if (seen_count)
        check_found(seen[0], seen[0]->key, possible);
    assert_true(!seen_count || seen[0]->key >= index);
}

static void read_floor(unsigned index)
{
    saw(tested->at(table_floor(map, index)));
}

static void check_floor(unsigned index, const bool *certain, const bool *possible)
{
    check_gap(seen_count ? seen[0]->key + 1 : 0, index + 1, certain);
    if (seen_count)
        check_found(seen[0], seen[0]->key, possible);
    assert_true(!seen_count || seen[0]->key <= index);
}

static void read_walk(unsigned from)
{
    struct prudence_map_walk walk;
    const struct entry *found = tested->at(table_first_from(&walk, map, from));

    for (seen_count = 0; found && seen_count <= key_count; seen_count++) {
        seen[seen_count] = found;
        found = tested->at(prudence_map_next(&walk));
    }
}

static void check_walk(unsigned from, const bool *certain, const bool *possible)
{
    unsigned next = from;

    for (unsigned i = 0; i < seen_count; i++) {
        if (seen[i]->key < next)
            fail_msg("a walk does not rise");
        check_gap(next, seen[i]->key, certain);
        check_found(seen[i], seen[i]->key, possible);
        next = seen[i]->key + 1;
    }
    check_gap(next, key_count, certain);
}

struct reader {
    void (*read)(unsigned index);
    void (*check)(unsigned index, const bool *certain, const bool *possible);
};

MAP_TEST_UNUSED static const struct reader lookups = {read_lookup, check_lookup},
                                           ceilings = {read_ceiling, check_ceiling},
                                           floors = {read_floor, check_floor},
                                           walks = {read_walk, check_walk};

/* ----------------------------------------------------------------------------- coming and going */

/* Adds the keys that come and go: all, or every second one from the first or second on. */
MAP_TEST_UNUSED static void come(unsigned first, unsigned every)
{
    for (unsigned i = 0, passing = 0; i < key_count; i++)
        if (!stays[i] && passing++ % every == first)
            assert_int_equal(tested->add(map, i, &items[i], NULL), 0);
}

MAP_TEST_UNUSED static void go(unsigned first, unsigned every)
{
    for (unsigned i = 0, passing = 0; i < key_count; i++)
        if (!stays[i] && passing++ % every == first)
            assert_ptr_equal(erase(i), &items[i]);
}

#endif /* TESTS_SUPPORT_MAP_CASES_H */
