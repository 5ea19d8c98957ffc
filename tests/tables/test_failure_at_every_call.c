/* SPDX-License-Identifier: MIT */
/*
 * Any call for memory may fail: a table that cannot be made is not made, a refused insertion has
 * changed nothing, a hash table that cannot be resized continues with its arrays, and an ordered
 * map frees removed nodes (support/every_call.h).
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "tables/route_words.h"
#include "support/every_call.h"
#include "support/updates.h"
#include "support/hash_test.h"

#include <prudence/hash_rename.h>
#include <prudence/hash_values.h>
#include <prudence/id_table.h>
#include <prudence/lockfree_hash.h>
#include <prudence/map_values.h>

#include "support/routes_test.h"

#define ITEMS 20000
#define IDS   5000
#define NAMES 5000

/* Begins the failures. A table that cannot be made is made after them. */
#define CREATE(table, create)                                                                      \
    do {                                                                                           \
        failures_begin();                                                                          \
        if (!((table) = (create))) {                                                               \
            assert_true(errno == ENOMEM);                                                          \
            failures_end();                                                                        \
            (table) = (create);                                                                    \
        }                                                                                          \
    } while (0)

/* ---------------------------------------------------------------------------------- hash tables */

static struct item items[ITEMS];

static void check_items(struct prudence_hash *table, unsigned count)
{
    for (unsigned i = 0; i < ITEMS; i++)
        assert_true(look_up(table, hash_mixed(i), i) == (i < count ? &items[i] : NULL));
}

static void use_hash(void)
{
    struct prudence_hash *table;
    bool resized;

    CREATE(table, prudence_hash_create("test", NULL));
    for (unsigned i = 0; i < ITEMS; i++) {
        items[i].key = i;
        prudence_hash_add_duplicate(table, hash_mixed(i), &items[i].node);
    }
    check_items(table, ITEMS);
    resized = prudence_hash_resize(table, 1 << 18) == 0;
    assert_true(resized || hash_stats_of(table).refused > 0);
    check_items(table, ITEMS);
    failures_end();
    assert_true(prudence_hash_resize(table, 1 << 18) == 0);
    assert_true(hash_stats_of(table).buckets == 1 << 18);
    check_items(table, ITEMS);
    for (unsigned i = ITEMS; i-- > 0;)
        assert_true(prudence_hash_remove(table, &items[i].node) == 0);
    check_items(table, 0);
    assert_true(prudence_hash_destroy(table, NULL, NULL) == 0);
}

/* ------------------------------------------------------------------------ renames, and no locks
 * Once there are tables, and fresh names, nothing fails, also where no resize succeeds. */

static struct prudence_hash_name names[ITEMS / 10];

static bool any(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct prudence_hash_name, node) == key;
}

static void use_renames(void)
{
    struct prudence_hash *table;

    CREATE(table, prudence_hash_create("test", NULL));
    for (unsigned i = 0; i < ITEMS / 20; i++)
        prudence_hash_add_duplicate(table, hash_mixed(2 * i), &names[2 * i].node);
    for (unsigned i = 0; i < ITEMS / 20; i++) {
        struct prudence_hash_name *fresh = &names[2 * i + 1];

        assert_true(!prudence_hash_rename(table, &names[2 * i], table, hash_mixed(2 * i + 1), any,
                                          fresh, fresh));
        assert_true(prudence_hash_lookup_name(table, hash_mixed(2 * i + 1), any, fresh) == fresh);
    }
    failures_end();
    assert_true(prudence_hash_count(table) == ITEMS / 20);
    for (unsigned i = 0; i < ITEMS / 20; i++)
        assert_true(!prudence_hash_remove(table, &names[2 * i + 1].node));
    assert_true(prudence_hash_destroy(table, NULL, NULL) == 0);
}

static void use_lockfree_hash(void)
{
    struct prudence_lockfree_hash *table;
    const struct prudence_lockfree_hash_attr attr = {
        .size = sizeof attr, .buckets = 100000}; /* enough for a separate mapping */
    struct prudence_hash_node *there = &items[0].node;

    CREATE(table, prudence_lockfree_hash_create("test", &attr));
    prudence_lockfree_hash_add_duplicate(table, 1, there);
    assert_true(prudence_lockfree_hash_replace(table, there, &items[1].node) == 0);
    assert_true(prudence_lockfree_hash_remove(table, &items[1].node) == 0);
    failures_end();
    assert_true(prudence_lockfree_hash_destroy(table, NULL, NULL) == 0);
}

/* -------------------------------------------------------------------------------- tables of ids */

static char objects[IDS];

static void check_ids(struct prudence_id_table *table, uint32_t count)
{
    for (uint32_t i = 0; i < IDS; i++)
        assert_true(prudence_id_table_lookup(table, i) == (i < count ? &objects[i] : NULL));
    assert_true(prudence_id_table_count(table) == count);
}

static void use_ids(void)
{
    struct prudence_id_table *table;
    uint32_t id;

    CREATE(table, prudence_id_table_create("test", NULL));
    for (uint32_t i = 0; i < IDS; i++) {
        int error = prudence_id_table_add(table, &objects[i], &id);

        if (error) {
            assert_true(error == ENOMEM);
            failures_end();
            check_ids(table, i);
            error = prudence_id_table_add(table, &objects[i], &id);
        }
        assert_true(!error && id == i);
    }
    failures_end();
    check_ids(table, IDS);
    for (uint32_t i = 0; i < IDS; i++)
        assert_true(ids_erase_found(table, i) == &objects[i]);
    assert_true(prudence_id_table_destroy(table, NULL, NULL) == 0);
}

/* --------------------------------------------------------------------------------------- routes */

#define ROUTES 700 /* the index gets wider on the way; for IPv6, so do the shortcuts */

static unsigned routes_family;

static struct prudence_routes_prefix route_number(unsigned i)
{
    struct prudence_routes_prefix prefix = {
        .address = {10, (unsigned char)(i >> 6), (unsigned char)(i << 2)},
        .length = i % 64 ? 22 + i % 11 : 8 + (i >> 6) % 9};

    if (routes_family == PRUDENCE_ROUTES_IPV6 && i % 64) {
        prefix.length = 22 + i % 70;
        for (unsigned byte = 3; byte < 12; byte++)
            prefix.address[byte] = (unsigned char)(i * (2 * byte + 1));
    }
    prefix_trim(&prefix);
    return prefix;
}

static bool is_new_route(unsigned i)
{
    struct prudence_routes_prefix prefix = route_number(i), other;

    for (unsigned j = 0; j < i; j += 64) { /* only the short ones may be present already */
        other = route_number(j);
        if (!memcmp(&other, &prefix, sizeof prefix))
            return false;
    }
    return true;
}

static void check_routes(struct prudence_routes *table, unsigned first, unsigned end)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < ROUTES; i++) {
        struct prudence_routes_prefix prefix = route_number(i);
        bool in = i >= first && i < end && is_new_route(i);

        count += in;
        if (is_new_route(i))
            assert_true(prudence_routes_get(table, &prefix) == (in ? 1 + i : 0));
    }
    assert_true(prudence_routes_count(table) == count);
    check_trie(table);
}

/* Adds or removes a route. The update may be refused once, and then has changed nothing. */
static void update_route(struct prudence_routes *table, unsigned i, bool adds)
{
    struct prudence_routes_prefix prefix = route_number(i);

    for (;;) {
        uintptr_t old = 0;
        int error = adds ? prudence_routes_add(table, &prefix, 1 + i, NULL)
                         : prudence_routes_erase(table, &prefix, &old);

        if (!error) {
            assert_true(adds || old == 1 + i);
            return;
        }
        assert_true(error == ENOMEM);
        failures_end();
        check_routes(table, adds ? 0 : i, adds ? i : ROUTES);
    }
}

static void use_routes_of(unsigned family)
{
    const struct prudence_routes_attr attr = {.size = sizeof attr, .family = family};
    struct prudence_routes *table;

    routes_family = family;
    CREATE(table, prudence_routes_create("test", &attr));
    for (unsigned i = 0; i < ROUTES; i++)
        if (is_new_route(i))
            update_route(table, i, true);
    check_routes(table, 0, ROUTES);
    assert_true(route_words_bits(table->index) == 13 || routes_stats_of(table).refused > 0);
    if (family == PRUDENCE_ROUTES_IPV6)
        assert_true(route_words_bits(table->shortcuts) > 9 || routes_stats_of(table).refused > 0);
    for (unsigned i = 0; i < ROUTES; i++)
        if (is_new_route(i))
            update_route(table, i, false);
    failures_end();
    check_routes(table, 0, 0);
    assert_true(prudence_routes_destroy(table) == 0);
}

static void use_routes(void)
{
    use_routes_of(PRUDENCE_ROUTES_IPV4);
}

static void use_routes_of_ipv6(void)
{
    use_routes_of(PRUDENCE_ROUTES_IPV6);
}

/* --------------------------------------------------------------------------------- ordered maps */

static struct path {
    struct prudence_map_bytes node;
    char text[32];
} paths[NAMES];

/* Checks that the map holds exactly the names from `first` to `end` - 1, in order. */
static void check_names(struct prudence_map *map, unsigned first, unsigned end)
{
    struct prudence_map_walk walk;
    struct prudence_map_node *node = prudence_map_first(&walk, map);

    assert_true(prudence_map_count(map) == end - first);
    for (unsigned i = 0; i < NAMES; i++) {
        bool there = i >= first && i < end;

        assert_true(prudence_map_lookup_bytes(map, paths[i].text, strlen(paths[i].text)) ==
                    (there ? &paths[i].node.node : NULL));
        assert_true(!there || node == &paths[i].node.node);
        if (there)
            node = prudence_map_next(&walk);
    }
    assert_true(!node);
}

static void add_name(struct prudence_map *map, struct prudence_map_bytes *node, unsigned before)
{
    int error = prudence_map_add(map, &node->node, NULL);

    if (error) {
        assert_true(error == ENOMEM);
        failures_end();
        check_names(map, 0, before);
        error = prudence_map_add(map, &node->node, NULL);
    }
    assert_true(!error);
}

/* Adds two keys with a prefix so long that memory may suffice for some of the nodes, and not for
 * all. */
static void add_and_remove_twins(struct prudence_map *map)
{
    static char text[10000];
    struct prudence_map_bytes twins[2];

    memset(text, 'x', sizeof text);
    for (unsigned i = 0; i < 2; i++)
        prudence_map_set_bytes(&twins[i], text, sizeof text - i);
    assert_true(!prudence_map_add(map, &twins[0].node, NULL));
    while (prudence_map_add(map, &twins[1].node, NULL))
        failures_end();
    assert_true(map_erase_bytes_found(map, text, sizeof text) == &twins[0].node);
    assert_true(map_erase_bytes_found(map, text, sizeof text - 1) == &twins[1].node);
}

/* Adds names with long common beginnings, so that an addition needs several nodes. */
static void add_names(struct prudence_map *map)
{
    for (unsigned i = 0; i < NAMES; i++) {
        snprintf(paths[i].text, sizeof paths[i].text, "%02u/a common beginning/%03u", i / 500,
                 i % 500);
        prudence_map_set_bytes(&paths[i].node, paths[i].text, strlen(paths[i].text));
        add_name(map, &paths[i].node, i);
    }
}

static void use_map(void)
{
    const struct prudence_map_attr attr = {.size = sizeof attr, .flags = PRUDENCE_MAP_BYTES};
    struct prudence_map_stats stats;
    struct prudence_map *map;

    CREATE(map, prudence_map_create("test", &attr));
    add_and_remove_twins(map);
    assert_true(prudence_map_stats(map, &stats) == 0 && stats.nodes == 0);
    add_names(map);
    check_names(map, 0, NAMES);
    failures_end();
    /* There is no memory for smaller nodes; the remaining names are still found. */
    memory_fail(0, UINT32_MAX);
    for (unsigned i = 0; i < NAMES; i++) {
        assert_true(map_erase_bytes_found(map, paths[i].text, strlen(paths[i].text)) ==
                    &paths[i].node.node);
        if (i % 499 == 0)
            check_names(map, i + 1, NAMES);
    }
    memory_fail(UINT32_MAX, 0);
    check_names(map, NAMES, NAMES);
    assert_true(prudence_map_stats(map, &stats) == 0 && stats.nodes == 0);
    assert_true(prudence_map_destroy(map, NULL, NULL) == 0);
}

/* Returns strings for several sizes of entries, one of them with separate pages. Valid until
 * the next call. */
static const void *value_key(unsigned i, size_t *length)
{
    static char text[5000];

    memset(text, 'k', sizeof text);
    snprintf(text, 8, "%07u", i);
    *length = i == 100 ? sizeof text : 8 + i % 300;
    return text;
}

static void check_values(struct prudence_map_values *map, unsigned first, unsigned end)
{
    size_t length;

    assert_true(prudence_map_values_count(map) == end - first);
    for (unsigned i = 0; i < NAMES / 10; i++) {
        const void *key = value_key(i, &length);

        assert_true(prudence_map_values_get_bytes(map, key, length) ==
                    (i >= first && i < end ? &objects[i] : NULL));
    }
}

/* Inserts a value. If the insertion is refused, nothing has changed. */
static void insert_value(struct prudence_map_values *map, unsigned i)
{
    size_t length;
    const void *key = value_key(i, &length);

    while (prudence_map_values_add_bytes(map, key, length, &objects[i], NULL)) {
        failures_end();
        check_values(map, 0, i);
        value_key(i, &length);
    }
}

/* Changes a value twice, and back. */
static void change_value(struct prudence_map_values *map, unsigned i)
{
    size_t length;
    const void *key = value_key(i, &length);
    void *old;

    while (prudence_map_values_put_bytes(map, key, length, &objects[IDS - 1], &old)) {
        failures_end();
        check_values(map, 0, i + 1);
        value_key(i, &length);
    }
    assert_true(old == &objects[i]);
    while (prudence_map_values_replace_bytes(map, key, length, &objects[IDS - 1], &objects[i]))
        failures_end();
}

static void use_values(void)
{
    const struct prudence_map_values_attr attr = {.size = sizeof attr,
                                                  .flags = PRUDENCE_MAP_VALUES_BYTES};
    struct prudence_map_stats empty, stats;
    struct prudence_map_values *map;
    size_t length;

    CREATE(map, prudence_map_values_create("test", &attr));
    assert_true(prudence_map_values_stats(map, &empty) == 0);
    for (unsigned i = 0; i < NAMES / 10; i++) {
        insert_value(map, i);
        change_value(map, i);
    }
    failures_end();
    check_values(map, 0, NAMES / 10);
    memory_fail(0, UINT32_MAX); /* erasing needs no memory */
    for (unsigned i = 0; i < NAMES / 10; i++) {
        const void *key = value_key(i, &length);

        assert_true(map_values_erase_bytes_found(map, key, length) == &objects[i]);
    }
    memory_fail(UINT32_MAX, 0);
    check_values(map, 0, 0);
    assert_true(prudence_map_values_stats(map, &stats) == 0 &&
                stats.bytes_live == empty.bytes_live);
    assert_true(prudence_map_values_destroy(map, NULL, NULL) == 0);
}

/* Does the same in a hash table, where only a new key needs memory. */
static void check_hash_values(struct prudence_hash_values *table, unsigned first, unsigned end)
{
    size_t length;

    assert_true(prudence_hash_values_count(table) == end - first);
    for (unsigned i = 0; i < NAMES / 10; i++) {
        const void *key = value_key(i, &length);

        assert_true(prudence_hash_values_get_bytes(table, key, length) ==
                    (i >= first && i < end ? &objects[i] : NULL));
    }
}

/* Adds by insert and by put in turns. If the call is refused, nothing has changed. */
static void add_hash_value(struct prudence_hash_values *table, unsigned i)
{
    void *old = NULL;
    size_t length;
    const void *key = value_key(i, &length);

    while (i % 2 ? prudence_hash_values_add_bytes(table, key, length, &objects[i], &old)
                 : prudence_hash_values_put_bytes(table, key, length, &objects[i], &old)) {
        failures_end();
        check_hash_values(table, 0, i);
        value_key(i, &length);
    }
    assert_true(!old);
}

static void use_hash_values(void)
{
    const struct prudence_hash_values_attr attr = {.size = sizeof attr,
                                                   .flags = PRUDENCE_HASH_VALUES_BYTES};
    struct prudence_hash_values *table;
    struct prudence_hash_stats stats;
    size_t length;

    CREATE(table, prudence_hash_values_create("test", &attr));
    for (unsigned i = 0; i < NAMES / 10; i++)
        add_hash_value(table, i);
    failures_end();
    check_hash_values(table, 0, NAMES / 10);
    memory_fail(0, UINT32_MAX);
    for (unsigned i = 0; i < NAMES / 10; i++) {
        const void *key = value_key(i, &length);
        void *old;

        assert_true(!prudence_hash_values_put_bytes(table, key, length, &objects[IDS - 1], &old));
        assert_true(old == &objects[i]);
        assert_true(!prudence_hash_values_replace_bytes(table, key, length, &objects[IDS - 1],
                                                        &objects[i]));
        assert_true(hash_values_erase_bytes_found(table, key, length) == &objects[i]);
    }
    memory_fail(UINT32_MAX, 0);
    check_hash_values(table, 0, 0);
    assert_true(prudence_hash_values_stats(table, &stats) == 0 && stats.objects == 0);
    assert_true(prudence_hash_values_destroy(table, NULL, NULL) == 0);
}

/* ------------------------------------------------------------------------------------ all calls */

static const struct failure_row rows[] = {
    {"hash", use_hash, NULL, 10, true},
    {"renames", use_renames, NULL, 10, true},
    {"hash without locks", use_lockfree_hash, NULL, 2, true},
    {"ids", use_ids, NULL, 10, true},
    {"routes", use_routes, NULL, 2, true},
    {"routes of IPv6", use_routes_of_ipv6, NULL, 2, true},
    {"map", use_map, NULL, 2, true},
    {"map of values", use_values, NULL, 2, true},
    {"hash of values", use_hash_values, NULL, 10, true},
};

TEST(failures_lose_nothing)
{
    every_call_of(rows, sizeof rows / sizeof rows[0]);
}

SUITE(pin_thread())
