/* SPDX-License-Identifier: MIT */
/*
 * A table of routes too large for a model (test_model.c), whose index grows: an address is checked
 * against its 33 prefixes.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "support/random.h"
#include "support/routes_test.h"

static uint64_t seed = 4711;

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
        const uint64_t bits = random_next(&seed);

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
