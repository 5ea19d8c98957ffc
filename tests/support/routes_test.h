/* SPDX-License-Identifier: MIT */
/* Common parts of the tests of routes: prefixes from text, and a check of whole tables. */
#ifndef TESTS_SUPPORT_ROUTES_TEST_H
#define TESTS_SUPPORT_ROUTES_TEST_H

#include "tables/route_area.h"
#include "tables/route_index.h"
#include "tables/route_shortcut.h"
#include "tables/route_words.h"
#include "support/slab_test.h"

#include <prudence/routes.h>

#include <arpa/inet.h>

#include "tables/routes.h"

#define ROUTES_TEST_UNUSED __attribute__((unused))

struct address {
    unsigned char bytes[16];
};

static bool is_ipv6(const struct prudence_routes *table)
{
    return route_table_of(table)->length_most == 128;
}

ROUTES_TEST_UNUSED static struct address address_of(const char *text)
{
    struct address address = {{0}};

    assert_int_equal(inet_pton(strchr(text, ':') ? AF_INET6 : AF_INET, text, address.bytes), 1);
    return address;
}

ROUTES_TEST_UNUSED static struct prudence_routes_prefix prefix_of(const char *text)
{
    const char *slash = strchr(text, '/');
    struct prudence_routes_prefix prefix = {.length = (unsigned)strtoul(slash + 1, NULL, 10)};
    char address[64];
    struct address bytes;

    snprintf(address, sizeof address, "%.*s", (int)(slash - text), text);
    bytes = address_of(address);
    memcpy(prefix.address, bytes.bytes, sizeof prefix.address);
    return prefix;
}

/* Clears the bits after the prefix's length. */
ROUTES_TEST_UNUSED static void prefix_trim(struct prudence_routes_prefix *prefix)
{
    for (unsigned bit = prefix->length; bit < 128; bit++)
        prefix->address[bit / 8] &= (unsigned char)~(0x80u >> bit % 8);
}

ROUTES_TEST_UNUSED static struct prudence_routes *routes_of(unsigned family, uint64_t prefixes,
                                                            struct prudence_domain *domain)
{
    struct prudence_routes_attr attr = {
        .size = sizeof attr, .family = family, .prefixes = prefixes, .domain = domain};
    struct prudence_routes *table = prudence_routes_create("test", &attr);

    assert_non_null(table);
    return table;
}

ROUTES_TEST_UNUSED static uintptr_t route_to(const struct prudence_routes *table,
                                             const struct address *address)
{
    return is_ipv6(table) ? prudence_routes_lookup_ipv6(table, address->bytes)
                          : prudence_routes_lookup_ipv4(table, address->bytes);
}

ROUTES_TEST_UNUSED static struct prudence_routes_stats
routes_stats_of(struct prudence_routes *table)
{
    struct prudence_routes_stats stats;

    assert_int_equal(prudence_routes_stats(table, &stats), 0);
    return stats;
}

ROUTES_TEST_UNUSED static bool prefix_matches(const struct prudence_routes_prefix *prefix,
                                              const unsigned char *address)
{
    const unsigned whole = prefix->length / 8, bits = prefix->length % 8;

    return !memcmp(prefix->address, address, whole) &&
           (!bits || (prefix->address[whole] ^ address[whole]) >> (8 - bits) == 0);
}

/* Orders by address, then by length. */
ROUTES_TEST_UNUSED static int compare_prefixes(const void *a, const void *b)
{
    const struct prudence_routes_prefix *one = a, *other = b;
    int order = memcmp(one->address, other->address, sizeof one->address);

    return order ? order : (one->length > other->length) - (one->length < other->length);
}

/* ------------------------------------------------------------------------------------- the trie */

struct sums {
    uint64_t prefixes, nodes, bytes, across, in_slots;
};

/* Checks that the edge's slot holds this edge, another one with the same hash, or none. */
static void check_shortcut(const struct route_table *table, unsigned level, uint64_t edge,
                           struct sums *sums)
{
    const unsigned end = level + 1 + route_edge_levels(edge);
    const uint64_t path = *route_path(route_edge_node(edge));
    uint64_t word;

    if (level >= ROUTE_LEVEL_SHORTCUT || end < ROUTE_LEVEL_SHORTCUT)
        return;
    word = *prudence_routes_word_(table->public.shortcuts,
                                  prudence_routes_hash_(path << (64 - route_bits_before(end))));
    sums->across++;
    if (route_edge_node(word) != route_edge_node(edge))
        return;
    assert_int_equal(word >> PRUDENCE_ROUTES_SKIP_SHIFT, route_bits_before(end));
    sums->in_slots++;
}

static uint64_t slots_in_use(const struct route_table *table)
{
    const uintptr_t shortcuts = table->public.shortcuts;
    uint64_t count = 0;

    for (size_t i = 0; shortcuts && i < (size_t)1 << route_words_bits(shortcuts); i++)
        count += route_words(shortcuts)[i] != 0;
    return count;
}

/* Checks all words of the index, and of areas, that begin with these bits. */
static void check_words(uintptr_t index, route_key key, unsigned length, uint64_t word)
{
    const struct route_span span =
        length > route_words_bits(index) ? route_index_find(index, key) : route_index_span(index);
    const uint64_t *first = route_span_word(&span, key);

    for (size_t i = 0; i < (size_t)1 << (span.before + span.bits - length); i++) {
        const bool is_area = route_is_area(first[i]);
        const uint64_t *const words = is_area ? route_area_span(first[i]).words : &first[i];

        for (size_t n = 0; n < (is_area ? (size_t)1 << PRUDENCE_ROUTES_AREA_BITS : 1); n++)
            assert_int_equal(words[n], word);
    }
}

static unsigned areas_in(uintptr_t index)
{
    unsigned areas = 0;

    for (size_t i = 0; i < (size_t)1 << route_words_bits(index); i++)
        areas += route_is_area(route_words(index)[i]);
    return areas;
}

/* Checks that the edge ends below `level`, and no later than the next level that always has a
 * node. */
static void check_edge(const struct route_table *table, unsigned level, route_key key,
                       uint64_t edge)
{
    const unsigned end = level + 1 + route_edge_levels(edge);

    for (unsigned between = level + 1; between < end; between++)
        assert_false(route_is_always_there(table, between));
    if (table->node_front)
        assert_int_equal(route_path_of(route_key_along(key, level, edge), level + 1),
                         route_path_of(key, level + 1));
}

/* Checks every invariant of tables/routes.h that holds while no thread is inside an update. */
static void check_node(const struct route_table *table, const struct route_node *node,
                       unsigned level, route_key key, struct sums *sums)
{
    const uintptr_t index = table->public.index;
    const unsigned words = route_node_words(node);

    assert_true(level == 0 || words > 1);
    if (words == 2 && node->children)
        assert_true(route_is_always_there(table, level));
    if (table->node_front && level)
        assert_int_equal(*route_path(node), route_path_of(key, level));
    assert_true(route_has(node->prefixes, ROUTE_ABOVE));
    sums->prefixes += prudence_routes_ones_(node->prefixes) - 1;
    sums->nodes++;
    sums->bytes += route_node_memory(table, node);
    for (unsigned slot = 0; slot < (level ? 64u : 2u); slot++) {
        const uint64_t word = route_word(node, route_longest(node, slot));
        const route_key below = route_key_with(key, level, slot);
        const uint64_t edge = route_has(node->children, slot) ? route_child_edge(node, slot) : 0;
        const struct route_node *child = route_edge_node(edge);

        assert_int_equal(word & PRUDENCE_ROUTES_NODE, 0);
        if (child) {
            assert_int_equal(route_word(child, ROUTE_ABOVE), word);
            check_edge(table, level, below, edge);
            if (table->node_front)
                check_shortcut(table, level, edge, sums);
            check_node(table, child, level + 1 + route_edge_levels(edge),
                       route_key_along(below, level, edge), sums);
        }
        if (level >= route_index_level(index, below) ||
            (child && level + 1 < route_index_level(index, below)))
            continue;
        check_words(index, below, route_bits_before(level + 1),
                    child ? route_index_node(child) : word);
    }
}

ROUTES_TEST_UNUSED static void check_trie(const struct prudence_routes *public)
{
    const struct route_table *table = route_table_of(public);
    struct sums sums = {0};

    check_node(table, table->root, 0, 0, &sums);
    assert_int_equal(areas_in(table->public.index), table->areas);
    assert_int_equal(sums.prefixes, prudence_routes_count(public));
    assert_int_equal(sums.nodes, table->nodes);
    assert_int_equal(sums.bytes, table->node_bytes);
    assert_int_equal(sums.across, table->edges_across);
    assert_int_equal(sums.in_slots, slots_in_use(table));
}

/* Makes the area of addresses that begin with these two bytes: prefixes that fill a node ask for
 * it, and go again. The area stays. */
ROUTES_TEST_UNUSED static void make_area(struct prudence_routes *table, unsigned char first,
                                         unsigned char second)
{
    struct prudence_routes_prefix prefix = {.address = {first, second, 224}, .length = 24};
    const unsigned areas = route_table_of(table)->areas;

    for (; prefix.address[2] < 224 + ROUTE_AREA_WORDS - 1; prefix.address[2]++) {
        assert_int_equal(route_table_of(table)->areas, areas);
        assert_int_equal(prudence_routes_add(table, &prefix, 1, NULL), 0);
    }
    assert_int_equal(route_table_of(table)->areas, areas + 1);
    while (prefix.address[2]-- > 224)
        assert_int_equal(prudence_routes_erase(table, &prefix, NULL), 0);
    assert_int_equal(route_table_of(table)->areas, areas + 1);
}

#endif /* TESTS_SUPPORT_ROUTES_TEST_H */
