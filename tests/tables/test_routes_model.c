/* SPDX-License-Identifier: MIT */
/*
 * Routes beside a model that searches a list: random updates of nested prefixes of all lengths; the
 * answers for every address, every prefix and every walk equal the model's. Then a table too large
 * for a list, whose index grows: an address is checked against its 33 prefixes.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "support/routes_test.h"
#include "support/test_seed.h"

static uint64_t seed;

static uint64_t next(void)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return seed >> 33;
}

/* Returns few different bits, so that most prefixes lie within others. */
static unsigned char random_byte(void)
{
    static const unsigned char bytes[] = {0x00, 0x00, 0x00, 0xff, 0xff, 0x80, 0x01, 0x20};

    return next() % 5 ? bytes[next() % 8] : (unsigned char)next();
}

static struct prudence_routes_prefix random_prefix(unsigned most)
{
    static const unsigned likely[] = {0, 1, 7, 8, 12, 13, 18, 19, 20, 24, 25, 31, 32};
    struct prudence_routes_prefix prefix = {.length = (unsigned)(next() % (most + 1))};

    if (next() % 2)
        prefix.length = likely[next() % (sizeof likely / sizeof likely[0])] * (most / 32);
    if (known_count && next() % 3 == 0)
        prefix = known[next() % known_count].prefix;
    else
        for (unsigned i = 0; i < most / 8; i++)
            prefix.address[i] = random_byte();
    if (next() % 8 == 0)
        prefix.length = (unsigned)(next() % (most + 1));
    prefix_trim(&prefix);
    return prefix;
}

/* Returns an address in the prefix, or right before or after it. */
static struct address address_near(const struct prudence_routes_prefix *prefix, unsigned most)
{
    struct address address;
    unsigned carry = (unsigned)(next() % 3);

    memcpy(address.bytes, prefix->address, sizeof address.bytes);
    for (unsigned bit = prefix->length; bit < most; bit++)
        if (carry == 2 || next() % 2)
            address.bytes[bit / 8] |= (unsigned char)(0x80u >> bit % 8);
    if (next() % 2)
        return address;
    for (unsigned i = most / 8; i-- > 0 && carry;) {
        address.bytes[i] = (unsigned char)(address.bytes[i] + (carry == 2 ? 1 : 0xff));
        carry = address.bytes[i] == (carry == 2 ? 0 : 0xff) ? carry : 0;
    }
    return address;
}

/* -------------------------------------------------------------------------------------- updates */

static void add(struct prudence_routes *table, const struct prudence_routes_prefix *prefix)
{
    const uintptr_t value = 1 + next() % (next() % 2 ? 3 : (uint64_t)1 << 31);

    if (known_prefix(prefix)) {
        assert_int_equal(prudence_routes_add(table, prefix, value, NULL), EEXIST);
        return;
    }
    if (known_count == KNOWN_MOST)
        return;
    assert_int_equal(prudence_routes_add(table, prefix, value, NULL), 0);
    known[known_count++] = (struct known){*prefix, value};
}

static void replace(struct prudence_routes *table, const struct prudence_routes_prefix *prefix)
{
    struct known *there = known_prefix(prefix);
    uintptr_t value = 1 + next() % 1000, old = 77;

    assert_int_equal(prudence_routes_replace(table, prefix, value, &old), there ? 0 : ENOENT);
    assert_int_equal(old, there ? there->value : 0);
    if (there)
        there->value = value;
}

static void remove_one(struct prudence_routes *table, const struct prudence_routes_prefix *prefix)
{
    struct known *there = known_prefix(prefix);
    uintptr_t old = 77;

    assert_int_equal(prudence_routes_erase(table, prefix, &old), there ? 0 : ENOENT);
    assert_int_equal(old, there ? there->value : 0);
    if (there)
        *there = known[--known_count];
}

/* ------------------------------------------------------------------------------------ questions */

static void check_walk(const struct prudence_routes *table,
                       const struct prudence_routes_prefix *within)
{
    struct prudence_routes_walk walk;
    unsigned at = 0;
    uintptr_t value;

    qsort(known, known_count, sizeof known[0], compare_prefixes);
    prudence_routes_for_each(&walk, table, within, value)
    {
        while (at < known_count && within &&
               (known[at].prefix.length < within->length ||
                !prefix_matches(within, known[at].prefix.address)))
            at++;
        assert_true(at < known_count);
        assert_memory_equal(&walk.prefix, &known[at].prefix, sizeof walk.prefix);
        assert_int_equal(value, known[at].value);
        at++;
    }
    for (; at < known_count; at++)
        assert_true(within && (known[at].prefix.length < within->length ||
                               !prefix_matches(within, known[at].prefix.address)));
}

/* Checks that one call finds what single lookups find, with addresses at odd places. */
static void check_together(const struct prudence_routes *table, const struct address *addresses,
                           unsigned count)
{
    unsigned char *packed = malloc(4 * count + 1);
    uintptr_t *values = malloc((count + 1) * sizeof *values);

    assert_true(packed && values);
    for (unsigned i = 0; i < count; i++)
        memcpy(packed + 1 + 4 * i, addresses[i].bytes, 4);
    values[count] = 77;
    prudence_routes_lookup_many_ipv4(table, packed + 1, count, values);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(values[i], route_to(table, &addresses[i]));
    assert_int_equal(values[count], 77);
    free(packed);
    free(values);
}

static void check_addresses(const struct prudence_routes *table,
                            const struct prudence_routes_prefix *prefix, unsigned most)
{
    const struct known *there = known_prefix(prefix);

    struct address addresses[8];

    for (unsigned i = 0; i < 8; i++) {
        addresses[i] = address_near(prefix, most);
        assert_int_equal(route_to(table, &addresses[i]), known_route(&addresses[i]));
    }
    if (most == 32)
        check_together(table, addresses, (unsigned)(next() % 9));
    assert_int_equal(prudence_routes_get(table, prefix), there ? there->value : 0);
}

static void random_updates_in(struct prudence_routes *table, unsigned family, uint64_t prefixes,
                              unsigned looks)
{
    const unsigned most = family == PRUDENCE_ROUTES_IPV6 ? 128 : 32;

    seed = 4711 + prefixes + family + test_seed(0) * 1000;
    known_count = 0;
    for (unsigned step = 1; step <= 8000; step++) {
        const struct prudence_routes_prefix prefix = random_prefix(most);
        /* The table fills and empties in turn. */
        const unsigned kind = (unsigned)(next() % (step / 1000 % 2 ? 6 : 12));

        if (kind < 3)
            remove_one(table, &prefix);
        else if (kind == 3)
            replace(table, &prefix);
        else
            add(table, &prefix);
        check_addresses(table, &prefix, most);
        if (step % 250 == 0)
            check_walk(table, step % 500 ? &prefix : NULL);
        if (step % (8000 / looks) == 0)
            check_trie(table);
        assert_int_equal(prudence_routes_count(table), known_count);
    }
    while (known_count) {
        const struct prudence_routes_prefix prefix = known[known_count / 2].prefix;

        remove_one(table, &prefix);
        check_addresses(table, &prefix, most);
    }
    check_trie(table);
    assert_int_equal(route_table_of(table)->nodes, 1);
    assert_int_equal(prudence_routes_destroy(table), 0);
}

static void random_updates(unsigned family, uint64_t prefixes, unsigned looks)
{
    random_updates_in(routes_of(family, prefixes, NULL), family, prefixes, looks);
}

TEST(ipv4_is_as_the_model)
{
    random_updates(PRUDENCE_ROUTES_IPV4, 0, 80);
    random_updates(PRUDENCE_ROUTES_IPV4, 1 << 11, 40);
    random_updates(PRUDENCE_ROUTES_IPV4, 1 << 17, 4);
}

/* Areas where most of the random prefixes are, beside words of the index that lead to nodes. */
TEST(areas_are_as_the_model)
{
    static const unsigned char bytes[] = {0x00, 0x20, 0x80, 0xff};
    struct prudence_routes *table = routes_of(PRUDENCE_ROUTES_IPV4, 1 << 11, NULL);

    for (unsigned i = 0; i < 12; i++)
        make_area(table, bytes[i / 4], bytes[i % 4]);
    check_trie(table);
    random_updates_in(table, PRUDENCE_ROUTES_IPV4, 1 << 11, 40);
}

TEST(ipv6_is_as_the_model)
{
    random_updates(PRUDENCE_ROUTES_IPV6, 0, 80);
    random_updates(PRUDENCE_ROUTES_IPV6, 1 << 11, 40);
    random_updates(PRUDENCE_ROUTES_IPV6, 1 << 17, 4);
}

/* --------------------------------------------------------------------------------- large tables */

#define MANY 140000u

static struct prudence_routes_prefix many_prefix(unsigned i)
{
    struct prudence_routes_prefix prefix = {.length = i % 9 ? 24 : 8 + i % 25};
    uint64_t bits = i * UINT64_C(0x9e3779b97f4a7c15);

    for (unsigned byte = 0; byte < 4; byte++)
        prefix.address[byte] = (unsigned char)(bits >> (56 - 8 * byte));
    prefix_trim(&prefix);
    return prefix;
}

static uintptr_t by_its_prefixes(const struct prudence_routes *table, const struct address *address)
{
    for (unsigned length = 33; length-- > 0;) {
        struct prudence_routes_prefix prefix = {.length = length};
        uintptr_t value;

        memcpy(prefix.address, address->bytes, 4);
        prefix_trim(&prefix);
        value = prudence_routes_get(table, &prefix);
        if (value)
            return value;
    }
    return 0;
}

static void check_many(const struct prudence_routes *table)
{
    static struct address addresses[19999];

    for (unsigned i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        const uint64_t bits = next();

        memcpy(addresses[i].bytes, &bits, 4);
        assert_int_equal(route_to(table, &addresses[i]), by_its_prefixes(table, &addresses[i]));
    }
    check_together(table, addresses, sizeof addresses / sizeof addresses[0]);
    for (unsigned count = 30; count < 35; count++)
        check_together(table, addresses, count);
}

TEST(the_index_grows_with_the_table)
{
    struct prudence_routes *table = routes_of(PRUDENCE_ROUTES_IPV4, 0, NULL);
    unsigned bits = 7, added = 0;

    assert_int_equal(routes_stats_of(table).index_bits, 7);
    for (unsigned i = 0; i < MANY; i++) {
        const struct prudence_routes_prefix prefix = many_prefix(i);
        int error = prudence_routes_add(table, &prefix, 1 + i, NULL);

        assert_true(!error || error == EEXIST);
        added += !error;
        if (i % 1000 == 0 && routes_stats_of(table).index_bits != bits) {
            bits = (unsigned)routes_stats_of(table).index_bits;
            check_trie(table);
            check_many(table);
        }
    }
    assert_int_equal(bits, 19);
    assert_int_equal(prudence_routes_count(table), added);
    check_many(table);
    for (unsigned i = 0; i < MANY; i++) {
        const struct prudence_routes_prefix prefix = many_prefix(i);
        int error = prudence_routes_erase(table, &prefix, NULL);

        assert_true(!error || error == ENOENT);
        added -= !error;
    }
    assert_int_equal(added, 0);
    check_trie(table);
    check_many(table);
    assert_int_equal(prudence_routes_destroy(table), 0);
}

SUITE(pin_thread())
