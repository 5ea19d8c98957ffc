/* SPDX-License-Identifier: MIT */
/*
 * Cases for tests that read a table, or change one, between any two instructions. In each case some
 * keys stay, and others come and go, so that the updates do everything they can: of a map, fill a
 * slot, make nodes for long common prefixes, cut a prefix, append, grow and shrink through all
 * kinds of nodes, replace a node by its only object, join two nodes, unlink a line of nodes; of
 * routes, all that hears of a prefix; of hashes, all places of a chain. Also the checks of what a
 * concurrent reader may see.
 */
#ifndef TESTS_TABLES_CASES_H
#define TESTS_TABLES_CASES_H

#include "support/hash_test.h"
#include "support/routes_test.h"
#include "tables/keys.h"
#include "tables/kinds.h"

#define ITEMS_MOST 300

static struct entry items[ITEMS_MOST], twins[ITEMS_MOST];
static bool stays[ITEMS_MOST]; /* by key; all other keys come and go */
static bool there[ITEMS_MOST]; /* keys in the table between two updates */
static void *table;
static unsigned key_count;
static uint64_t looks;
static unsigned moving = ITEMS_MOST; /* the key being added or removed */

/* ---------------------------------------------------------------------------------------- cases */

struct test_case {
    const char *name;
    unsigned kinds;                            /* a bit each */
    const char *staying[12], *passing[12];     /* strings, or prefixes */
    unsigned stay, pass;                       /* or numbers of keys */
    uint64_t stay_from, pass_from, pass_every; /* the keys' distance, if not 2 */
    uint64_t (*hash)(uint64_t number);
    bool everywhere; /* stop searches at each instruction while keys are swapped */
};

#define OF_MAPS   1u << TABLE_MAP
#define OF_TEXT   1u << TABLE_MAP_BYTES
#define OF_HASHES 1u << TABLE_HASH | 1u << TABLE_LOCKFREE_HASH

/* Puts the keys into four of 64 buckets, and each in its own of 512. */
static uint64_t hash_few_buckets(uint64_t number)
{
    return hash_for(number % 4 << 62 | number << 55);
}

static const struct test_case cases[] = {
    {"an empty map", OF_MAPS, .pass = 1},
    {"next to an object", OF_MAPS, .stay = 1, .pass = 1, .pass_from = 200},
    {"four to eighteen and back", OF_MAPS, .stay = 3, .pass = 3, .pass_from = 100},
    {"eighteen to forty and back", OF_MAPS, .stay = 12, .pass = 5, .pass_from = 64},
    {"forty to ninety and back", OF_MAPS, .stay = 28, .pass = 5, .pass_from = 100},
    {"ninety to all and back", OF_MAPS, .stay = 64, .pass = 9, .pass_from = 100},
    {"in the middle of a node", OF_MAPS, .stay = 3, .pass = 3, .stay_from = 10},
    {"a fork at the first byte", OF_MAPS, .stay = 2, .pass = 2, .pass_from = 1ull << 60},
    {"a prefix is cut twice", OF_MAPS, .stay = 2, .pass = 1, .pass_from = 0x400000000000},
    {"two keys far away", OF_MAPS, .stay = 4, .pass = 2, .pass_from = 0x7700000000},
    {"a line of nodes", OF_TEXT, .staying = {"b"},
     .passing = {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa2"}},
    {"ends", OF_TEXT, .staying = {"", "abc", "abcdefghijklmnopqrstuvw"},
     .passing = {"a", "ab", "abcdefghijk", "abcdefghijklmnopqrstu"}},
    {"a string that begins all others", OF_TEXT, .staying = {"xyz1", "xyz2", "xyz3", "xyz4"},
     .passing = {"xyz", "x", ""}},
    {"a long prefix is cut", OF_TEXT,
     .staying = {"http://www.example.org/1", "http://www.example.org/2"},
     .passing = {"http://www.example.com/", "http://", "https://www.example.org"}},
    {"a node whose keys all change", OF_TEXT, .staying = {"z"},
     .passing = {"a", "m1", "m2", "m3", "m4"}, .everywhere = true},
    {"nodes are joined", OF_TEXT, .staying = {"prefix", "prefixed1", "prefixed2"},
     .passing = {"pre", "prefi", "prefixe", "q"}},
    {"values in the order of numbers", 1u << TABLE_MAP_VALUES, .stay = 3, .pass = 3,
     .pass_from = 100},
    {"one chain", OF_HASHES, .stay = 3, .pass = 3, .hash = hash_all_one},
    {"some chains", OF_HASHES | 1u << TABLE_HASH_VALUES, .stay = 6, .pass = 4,
     .hash = hash_few_buckets},
    {"an array that grows", 1u << TABLE_IDS, .stay = 62, .pass = 4},
    {"prefixes of IPv4", 1u << TABLE_ROUTES_IPV4,
     .staying = {"0.0.0.0/1", "10.1.0.0/16", "10.1.2.0/24"},
     .passing = {"0.0.0.0/0", "10.0.0.0/9", "10.1.0.0/19", "10.1.2.0/25", "10.1.2.3/32",
                 "12.0.0.0/6", "192.0.2.0/24", "200.1.2.77/32"}},
    {"prefixes in areas", 1u << TABLE_ROUTES_AREAS,
     .staying = {"0.0.0.0/1", "10.1.2.0/24", "192.0.2.0/25"},
     .passing = {"10.1.2.0/25", "10.1.2.3/32", "10.1.4.0/23", "192.0.2.0/24", "200.1.2.77/32"}},
    {"prefixes of IPv6", 1u << TABLE_ROUTES_IPV6,
     .staying = {"2000::/3", "2001:db8:1::/48", "2001:db8:1:2::3/128"},
     .passing = {"::/0", "2001:db8::/30", "2001:db8::/32", "2001:db8:1::/56", "2001:db8:1:2::/64",
                 "2001:db8:1:2:8000::/65", "2001:db8:1:8000::/56", "2001:db8:c000::/34",
                 "2001:dc0::/28"}},
};
#define CASES (sizeof cases / sizeof cases[0])

/* Adds a key that has a text. */
static void add_text(const char *text)
{
    if (tested->flags & TABLE_KEEPS)
        keys_add_prefix(tested == &table_kinds[TABLE_ROUTES_IPV6], prefix_of(text));
    else
        keys_add_string(text, strlen(text));
}

static bool has_text(unsigned key, const char *text)
{
    struct prudence_routes_prefix prefix;

    if (!(tested->flags & TABLE_KEEPS))
        return strlen(text) == key_strings[key].length &&
               !memcmp(text, key_strings[key].bytes, key_strings[key].length);
    prefix = prefix_of(text);
    return !compare_prefixes(&prefix, &key_prefixes[strchr(text, ':') != NULL][key]);
}

static bool starts_out(const struct test_case *at, unsigned key)
{
    for (unsigned i = 0; i < 12 && at->staying[i]; i++)
        if (has_text(key, at->staying[i]))
            return true;
    return !at->passing[0] && key_numbers[key] >= at->stay_from &&
           key_numbers[key] < at->stay_from + 2 * at->stay &&
           (key_numbers[key] - at->stay_from) % 2 == 0;
}

static void make_keys(const struct test_case *at)
{
    keys_clear();
    for (unsigned i = 0; i < 12 && at->staying[i]; i++)
        add_text(at->staying[i]);
    for (unsigned i = 0; i < 12 && at->passing[i]; i++)
        add_text(at->passing[i]);
    for (unsigned i = 0; i < at->stay; i++)
        keys_add_number(at->stay_from + 2 * i);
    for (unsigned i = 0; i < at->pass; i++)
        keys_add_number((at->pass_from | 1) + 2 * i);
    keys_sort();
    key_count = *tested->keys;
    assert_true(key_count <= ITEMS_MOST);
}

/* The first and the last address of each prefix, so that stepped readers compute little. */
static struct address addresses[ITEMS_MOST][2];

static struct address address_in(unsigned index, bool last)
{
    const struct prudence_routes_prefix *prefix = &key_prefixes[is_ipv6(table)][index];
    struct address address;

    memcpy(address.bytes, prefix->address, sizeof address.bytes);
    for (unsigned bit = prefix->length; last && bit < (is_ipv6(table) ? 128 : 32); bit++)
        address.bytes[bit / 8] |= (unsigned char)(0x80u >> bit % 8);
    return address;
}

static void find_addresses(void)
{
    for (unsigned i = 0; tested->flags & TABLE_KEEPS && i < key_count; i++)
        for (unsigned last = 0; last < 2; last++)
            addresses[i][last] = address_in(i, last);
}

static void begin_case(const struct test_case *at)
{
    make_keys(at);
    if (at->hash)
        table_hash = at->hash;
    table = table_make(tested, NULL);
    find_addresses();
    memset(there, 0, sizeof there);
    for (unsigned i = 0; i < key_count; i++) {
        items[i].key = twins[i].key = i;
        stays[i] = starts_out(at, i);
        if (stays[i])
            assert_int_equal(tested->add(table, i, &items[i], NULL), 0);
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
    int error = tested->erase(table, key, &found);

    assert_int_equal(error, found ? 0 : ENOENT);
    return found;
}

/* Checks every invariant. Other threads may have left nodes of a map larger than necessary. */
static void check_table(bool alone)
{
    if (tested->at && !alone)
        check_map(table, false);
    else
        tested->check(table);
}

static void end_case(void)
{
    check_table(false);
    for (unsigned i = 0; i < key_count; i++)
        assert_ptr_equal(erase(i), stays[i] ? &items[i] : NULL);
    assert_int_equal(tested->destroy(table, NULL, NULL), 0);
}

/* Adds the keys that come and go: all, or every second one from the first or second on. */
static void come(unsigned first, unsigned every)
{
    for (unsigned i = 0, passing = 0; i < key_count; i++)
        if (!stays[i] && passing++ % every == first)
            assert_int_equal(tested->add(table, i, &items[i], NULL), 0);
}

static void go(unsigned first, unsigned every)
{
    for (unsigned i = 0, passing = 0; i < key_count; i++)
        if (!stays[i] && passing++ % every == first)
            assert_ptr_equal(erase(i), &items[i]);
}

/* ------------------------------------------------------------------------ what a reader may see */

/* Checks that no key between `from` and `to` that is certainly in the table was passed over. */
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
    saw(tested->get(table, index));
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
    saw(tested->at(table_ceiling(table, index)));
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
    saw(tested->at(table_floor(table, index)));
}

static void check_floor(unsigned index, const bool *certain, const bool *possible)
{
    check_gap(seen_count ? seen[0]->key + 1 : 0, index + 1, certain);
    if (seen_count)
        check_found(seen[0], seen[0]->key, possible);
    assert_true(!seen_count || seen[0]->key <= index);
}

static void read_first_route(unsigned index)
{
    saw((struct entry *)route_to(table, &addresses[index][0]));
}

static void read_last_route(unsigned index)
{
    const struct address *const address = &addresses[index][1];
    unsigned char packed[8];
    uintptr_t found[2];

    if (is_ipv6(table)) {
        saw((struct entry *)route_to(table, address));
        return;
    }
    memcpy(packed, key_prefixes[0][0].address, 4);
    memcpy(packed + 4, address->bytes, 4);
    prudence_routes_lookup_many_ipv4(table, packed, 2, found);
    saw((struct entry *)found[1]);
}

/* No longer prefix of the address is certainly in the table. */
static void check_route(unsigned index, bool last, const bool *certain, const bool *possible)
{
    const struct prudence_routes_prefix *prefixes = key_prefixes[is_ipv6(table)];
    const struct address address = addresses[index][last];

    if (seen_count) {
        check_found(seen[0], seen[0]->key, possible);
        assert_true(prefix_matches(&prefixes[seen[0]->key], address.bytes));
    }
    for (unsigned i = 0; i < key_count; i++)
        if (prefix_matches(&prefixes[i], address.bytes) &&
            (!seen_count || prefixes[i].length > prefixes[seen[0]->key].length))
            check_gap(i, i + 1, certain);
}

static void check_first_route(unsigned index, const bool *certain, const bool *possible)
{
    check_route(index, false, certain, possible);
}

static void check_last_route(unsigned index, const bool *certain, const bool *possible)
{
    check_route(index, true, certain, possible);
}

static void see(unsigned key, struct entry *entry, void *unused)
{
    if (entry->key == key && seen_count <= key_count)
        seen[seen_count++] = entry;
}

/* Walks from this key on, or all that has no order. */
static void read_walk(unsigned from)
{
    struct prudence_map_walk walk;
    const struct entry *found =
        tested->at ? tested->at(table_first_from(&walk, table, from)) : NULL;

    seen_count = 0;
    if (!tested->at)
        tested->walk(table, see, NULL);
    for (; found && seen_count <= key_count; found = tested->at(prudence_map_next(&walk)))
        seen[seen_count++] = found;
}

static void check_walk(unsigned from, const bool *certain, const bool *possible)
{
    bool missing[ITEMS_MOST];

    memcpy(missing, certain, sizeof missing);
    for (unsigned i = 0; i < seen_count; i++) {
        check_found(seen[i], seen[i]->key, possible);
        missing[seen[i]->key] = false;
        for (unsigned j = 0; j < i; j++)
            if (tested->flags & TABLE_SORTED ? seen[j]->key >= seen[i]->key : seen[j] == seen[i])
                fail_msg("a walk does not rise, or finds an object twice");
    }
    check_gap(tested->at ? from : 0, key_count, missing);
}

static const struct reader {
    void (*read)(unsigned index);
    void (*check)(unsigned index, const bool *certain, const bool *possible);
} lookups = {read_lookup, check_lookup}, ceilings = {read_ceiling, check_ceiling},
  floors = {read_floor, check_floor}, walks = {read_walk, check_walk},
  first_routes = {read_first_route, check_first_route},
  last_routes = {read_last_route, check_last_route};

/* Whether this kind of table has such readers. */
static bool has_reader(const struct reader *reader)
{
    if (reader == &ceilings || reader == &floors)
        return tested->at;
    if (reader == &first_routes || reader == &last_routes)
        return tested->flags & TABLE_KEEPS;
    return true;
}

#endif /* TESTS_TABLES_CASES_H */
