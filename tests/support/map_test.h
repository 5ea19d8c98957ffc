/* SPDX-License-Identifier: MIT */
/*
 * Common parts of the tests of ordered maps: all keys of a test, sorted, with an object for each,
 * and a check of all invariants of a map. `map_strings` shows whether keys are strings or numbers.
 */
#ifndef TESTS_SUPPORT_MAP_TEST_H
#define TESTS_SUPPORT_MAP_TEST_H

#include "support/slab_test.h"
#include "support/updates.h"

#include <prudence/map.h>

#include "tables/map.h"

#define MAP_TEST_UNUSED __attribute__((unused))
#define MAP_TEST_LONG   64

struct item {
    struct prudence_map_bytes node;
    unsigned index; /* of the key */
    unsigned visits;
};

static bool map_strings;

/* A key as a string. A number is stored as bytes, highest first. */
struct test_key {
    uint8_t bytes[MAP_TEST_LONG];
    size_t length;
};

static struct test_key *map_keys; /* sorted, without duplicates */
static unsigned map_key_count;

static int compare_keys(const void *a, const void *b)
{
    const struct test_key *left = a, *right = b;
    size_t shorter = left->length < right->length ? left->length : right->length;
    int order = memcmp(left->bytes, right->bytes, shorter);

    return order ? order : (left->length > right->length) - (left->length < right->length);
}

MAP_TEST_UNUSED static void clear_keys(bool strings)
{
    free(map_keys);
    map_keys = NULL;
    map_key_count = 0;
    map_strings = strings;
}

static void add_key(const void *bytes, size_t length)
{
    map_keys = realloc(map_keys, (map_key_count + 1) * sizeof map_keys[0]);
    assert_non_null(map_keys);
    assert_true(length <= MAP_TEST_LONG && (map_strings || length == 8));
    map_keys[map_key_count].length = length;
    memset(map_keys[map_key_count].bytes, 0, MAP_TEST_LONG);
    memcpy(map_keys[map_key_count++].bytes, bytes, length);
}

MAP_TEST_UNUSED static void add_number(uint64_t number)
{
    uint8_t bytes[8];

    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (56 - 8 * i));
    add_key(bytes, 8);
}

MAP_TEST_UNUSED static void sort_keys(void)
{
    unsigned count = 0;

    qsort(map_keys, map_key_count, sizeof map_keys[0], compare_keys);
    for (unsigned i = 0; i < map_key_count; i++)
        if (!count || compare_keys(&map_keys[count - 1], &map_keys[i]))
            map_keys[count++] = map_keys[i];
    map_key_count = count;
}

static uint64_t number_of(unsigned index)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < 8; i++)
        number = number << 8 | map_keys[index].bytes[i];
    return number;
}

MAP_TEST_UNUSED static void set_key(struct item *item, unsigned index)
{
    item->index = index;
    if (map_strings)
        prudence_map_set_bytes(&item->node, map_keys[index].bytes, map_keys[index].length);
    else
        item->node.node.key = number_of(index);
}

static struct item *item_of(struct prudence_map_node *node)
{
    return node ? prudence_map_entry(node, struct item, node.node) : NULL;
}

/* ----------------------------------------------------------------------- all functions by index */

MAP_TEST_UNUSED static struct prudence_map *map_of_domain(struct prudence_domain *domain)
{
    struct prudence_map_attr attr = {
        .size = sizeof attr, .flags = map_strings ? PRUDENCE_MAP_BYTES : 0, .domain = domain};
    struct prudence_map *map = prudence_map_create("test", &attr);

    assert_non_null(map);
    return map;
}

MAP_TEST_UNUSED static struct item *look_up(struct prudence_map *map, unsigned index)
{
    const struct test_key *key = &map_keys[index];

    return item_of(map_strings ? prudence_map_lookup_bytes(map, key->bytes, key->length)
                               : prudence_map_lookup(map, number_of(index)));
}

MAP_TEST_UNUSED static struct item *ceiling_of(struct prudence_map *map, unsigned index)
{
    const struct test_key *key = &map_keys[index];

    return item_of(map_strings ? prudence_map_ceiling_bytes(map, key->bytes, key->length)
                               : prudence_map_ceiling(map, number_of(index)));
}

MAP_TEST_UNUSED static struct item *floor_of(struct prudence_map *map, unsigned index)
{
    const struct test_key *key = &map_keys[index];

    return item_of(map_strings ? prudence_map_floor_bytes(map, key->bytes, key->length)
                               : prudence_map_floor(map, number_of(index)));
}

MAP_TEST_UNUSED static struct item *first_from(struct prudence_map_walk *walk,
                                               struct prudence_map *map, unsigned index)
{
    const struct test_key *key = &map_keys[index];

    return item_of(map_strings ? prudence_map_first_from_bytes(walk, map, key->bytes, key->length)
                               : prudence_map_first_from(walk, map, number_of(index)));
}

MAP_TEST_UNUSED static struct item *remove_index(struct prudence_map *map, unsigned index)
{
    const struct test_key *key = &map_keys[index];

    return item_of(map_strings ? map_erase_bytes_found(map, key->bytes, key->length)
                               : map_erase_found(map, number_of(index)));
}

MAP_TEST_UNUSED static struct prudence_map_stats map_stats_of(struct prudence_map *map)
{
    struct prudence_map_stats stats;

    assert_int_equal(prudence_map_stats(map, &stats), 0);
    return stats;
}

/* Ends enough grace periods of the manual domain to make all deferred objects safe and merge
 * them. */
MAP_TEST_UNUSED static void all_readers_leave(struct prudence_domain *domain)
{
    for (unsigned i = 0; i < 4; i++) {
        prudence_trim();
        prudence_manual_advance(domain);
    }
    prudence_trim();
}

/* ----------------------------------------------------------------------------------- invariants */

struct map_check {
    struct prudence_map *map;
    uint8_t path[MAP_TEST_LONG + 8];
    uint64_t objects, nodes, bytes;
    bool tidy; /* no node is larger than necessary */
};

static void check_object(struct map_check *check, uintptr_t link, size_t at, bool ends)
{
    const struct test_key *key = &map_keys[item_of(map_object(link))->index];

    assert_true(ends ? key->length == at : key->length >= at);
    assert_memory_equal(key->bytes, check->path, at);
    check->objects++;
}

static void check_link(struct map_check *check, uintptr_t link, size_t at);

static unsigned check_slots(struct map_check *check, struct map_node *node, size_t at)
{
    unsigned live = 0, slots = 0;

    for (unsigned byte = 0; byte < 256; byte++) {
        const uintptr_t *slot = map_slot(node, (uint8_t)byte);

        slots += slot != NULL;
        if (!slot || !*slot)
            continue;
        live++;
        check->path[at] = (uint8_t)byte;
        check_link(check, *slot, at + 1);
    }
    assert_int_equal(slots, node->kind == MAP_ALL ? 256 : node->used);
    return live;
}

static void check_node(struct map_check *check, struct map_node *node, size_t at)
{
    unsigned length = map_prefix_length(node->prefix), live = 0, byte;

    assert_int_equal(node->lock, MAP_FREE);
    assert_true(length <= MAP_PREFIX_MOST && node->kind < MAP_KINDS);
    for (unsigned i = 0; i < length; i++)
        check->path[at++] = map_prefix_byte(node->prefix, i);
    if (node->end) {
        check_object(check, node->end, at, true);
        live++;
    }
    live += check_slots(check, node, at);
    assert_int_equal(live, node->live);
    assert_true(live > 0);
    check->nodes++;
    check->bytes += map_node_bytes(node->kind);
    if (!check->tidy)
        return;
    if (live == 1) /* cutting a long prefix may leave two parts that could be joined */
        assert_false(map_is_object(map_node_only_link(node, &byte)));
    assert_true(node->kind == MAP_FOUR || live > map_capacity[node->kind - 1] / 2);
}

static void check_link(struct map_check *check, uintptr_t link, size_t at)
{
    if (map_is_object(link))
        check_object(check, link, at, false);
    else
        check_node(check, map_inner(link), at);
}

/* Checks every invariant of a map. No thread may be inside an update. */
MAP_TEST_UNUSED static void check_map(struct prudence_map *map, bool tidy)
{
    struct map_check check = {.map = map, .tidy = tidy};

    assert_int_equal(map->top.node.lock, MAP_FREE);
    if (map->top.root)
        check_link(&check, map->top.root, 0);
    assert_int_equal(check.objects, prudence_map_count(map));
    assert_int_equal(check.nodes, map_stats_of(map).nodes);
    assert_int_equal(check.bytes + map->allocated, map_stats_of(map).bytes_live);
}

/* -------------------------------------------------------------------------------- sets of keys */

/* Makes numbers: the extremes, neighbours, every length of a common prefix, all values of a byte in
 * every place. */
MAP_TEST_UNUSED static void make_numbers(void)
{
    clear_keys(false);
    for (uint64_t i = 0; i < 300; i++) {
        add_number(i);
        add_number(UINT64_MAX - i);
        add_number(UINT64_C(0x4242424242424200) + i);
        add_number(i << 33);
        add_number(i * UINT64_C(0x9e3779b97f4a7c15));
        add_number((i % 20) << 24 | (i / 20) << 8);
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        add_number(UINT64_C(1) << bit);
        add_number(UINT64_C(0x1122334455667788) ^ UINT64_C(1) << bit);
    }
    sort_keys();
}

/* Makes strings: the empty one, prefixes of others, zeros, long common prefixes of every length,
 * all bytes. */
MAP_TEST_UNUSED static void make_strings(void)
{
    uint8_t bytes[MAP_TEST_LONG];
    uint64_t random = 7;

    clear_keys(true);
    for (unsigned length = 0; length <= 40; length++) {
        memset(bytes, 'a', sizeof bytes);
        add_key(bytes, length);
        bytes[length / 2] = 'b';
        add_key(bytes, length);
        memset(bytes, 0, sizeof bytes);
        add_key(bytes, length);
        memset(bytes, 255, sizeof bytes);
        add_key(bytes, length);
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        bytes[0] = (uint8_t)byte;
        add_key(bytes, 1);
        memcpy(bytes, "http://example.org/", 19);
        bytes[19] = (uint8_t)byte;
        add_key(bytes, 20);
        add_key(bytes, 19 + byte % 30);
    }
    for (unsigned i = 0; i < 600; i++) {
        size_t length = (random >> 40) % 12;

        for (unsigned k = 0; k < length; k++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            bytes[k] = i % 2 ? (uint8_t)((random >> 33) % 3) : (uint8_t) "xyz/"[(random >> 33) % 4];
        }
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        add_key(bytes, length);
    }
    sort_keys();
}

#endif /* TESTS_SUPPORT_MAP_TEST_H */
