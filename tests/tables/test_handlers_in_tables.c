/* SPDX-License-Identifier: MIT */
/*
 * Signal handlers at each instruction of what structures let a handler call
 * (support/handler_steps.h): lookups and walks of all tables, updates of the table without locks,
 * stacks, counters, logs and references.
 *
 * ctest: cost 20
 * ctest: needs steps
 */
#define _GNU_SOURCE
#pragma GCC optimize("O2") /* the inlined functions, as in programs */
#include <prudence/counter.h>
#include <prudence/hash_values.h>
#include <prudence/id_table.h>
#include <prudence/lockfree_hash.h>
#include <prudence/log.h>
#include <prudence/map_values.h>
#include <prudence/rcu.h>
#include <prudence/ref.h>
#include <prudence/routes.h>
#include <prudence/stack.h>
#include <prudence/swap.h>

#include "support/handler_steps.h"

#define MANY 5 /* objects in each table, numbers 10, 20, ... */
#define HASH 7 /* of all objects in the tables of hashes */

struct item {
    struct prudence_hash_node node;
    struct prudence_stack_node place;
    struct prudence_map_node number;
    struct prudence_map_bytes bytes;
    uint64_t key;
};

static struct item items[MANY];
static char names[MANY][4];
static struct prudence_hash *hash;
static struct prudence_hash_values *values, *strings;
static struct prudence_map *map, *map_strings;
static struct prudence_map_values *map_values, *map_string_values;
static struct prudence_id_table *ids;
static struct prudence_routes *routes4, *routes6;
static struct prudence_lockfree_hash *lockfree;
static struct prudence_stack stack;
static struct prudence_counter *counter;
static struct prudence_log *logged;
static struct prudence_ref references;
static struct prudence_swap handle;

/* Objects that were on the stack or in the table without locks are not used again before the
 * thread has ended. */
static struct item fresh_items[64];
static unsigned fresh_used;

static struct item *fresh(uint64_t key)
{
    struct item *item = &fresh_items[__atomic_fetch_add(&fresh_used, 1, __ATOMIC_RELAXED)];

    item->key = key;
    return item;
}

static bool matches(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, struct item, node)->key == *(const uint64_t *)key;
}

/* ------------------------------------------------------------------------------------- readers */

static void hash_lookup(unsigned depth)
{
    const uint64_t key = 20, none = 21;
    struct prudence_hash_node *found;

    (void)depth;
    prudence_read_lock();
    found = prudence_hash_lookup(hash, HASH, matches, &key);
    HANDLER_CHECK(found == &items[1].node);
    HANDLER_CHECK(!prudence_hash_next_duplicate(found, matches, &key));
    HANDLER_CHECK(!prudence_hash_lookup_slow(hash, HASH, matches, &none));
    prudence_read_unlock();
}

static void hash_walk(unsigned depth)
{
    struct prudence_hash_walk walk;
    struct prudence_hash_node *node;
    unsigned count = 0;

    (void)depth;
    prudence_read_lock();
    for (node = prudence_hash_first(&walk, hash); node; node = prudence_hash_next(&walk))
        count++;
    prudence_read_unlock();
    HANDLER_CHECK(count == MANY);
}

static void hash_value(unsigned depth)
{
    (void)depth;
    prudence_read_lock();
    HANDLER_CHECK(prudence_hash_values_get(values, 30) == &items[2]);
    HANDLER_CHECK(prudence_hash_values_get_bytes(strings, names[3], 2) == &items[3]);
    prudence_read_unlock();
}

static void hash_value_walk(unsigned depth)
{
    struct prudence_hash_values_walk walk;
    unsigned count = 0;

    (void)depth;
    prudence_read_lock();
    for (void *value = prudence_hash_values_first(&walk, values); value;
         value = prudence_hash_values_next(&walk))
        count++;
    prudence_read_unlock();
    HANDLER_CHECK(count == MANY);
}

static void map_number(unsigned depth)
{
    (void)depth;
    prudence_read_lock();
    HANDLER_CHECK(prudence_map_lookup(map, 20) == &items[1].number);
    HANDLER_CHECK(prudence_map_ceiling(map, 21) == &items[2].number);
    HANDLER_CHECK(prudence_map_floor(map, 21) == &items[1].number);
    prudence_read_unlock();
}

static void map_neighbour(unsigned depth)
{
    (void)depth;
    prudence_read_lock();
    HANDLER_CHECK(prudence_map_after(map, &items[1].number) == &items[2].number);
    HANDLER_CHECK(prudence_map_before(map, &items[1].number) == &items[0].number);
    HANDLER_CHECK(prudence_map_lowest(map) == &items[0].number);
    HANDLER_CHECK(prudence_map_highest(map) == &items[MANY - 1].number);
    prudence_read_unlock();
}

static void map_string(unsigned depth)
{
    (void)depth;
    prudence_read_lock();
    HANDLER_CHECK(prudence_map_lookup_bytes(map_strings, "b", 2) == &items[1].bytes.node);
    HANDLER_CHECK(prudence_map_ceiling_bytes(map_strings, "b0", 2) == &items[2].bytes.node);
    HANDLER_CHECK(prudence_map_floor_bytes(map_strings, "b0", 2) == &items[1].bytes.node);
    prudence_read_unlock();
}

static void map_walk(unsigned depth)
{
    struct prudence_map_walk walk;
    struct prudence_map_node *node;
    unsigned count = 0;

    (void)depth;
    prudence_read_lock();
    for (node = prudence_map_first(&walk, map); node; node = prudence_map_next(&walk))
        count++;
    HANDLER_CHECK(!prudence_map_next_slow(&walk));
    prudence_read_unlock();
    HANDLER_CHECK(count == MANY);
}

static void map_walk_from(unsigned depth)
{
    struct prudence_map_walk walk;

    (void)depth;
    prudence_read_lock();
    HANDLER_CHECK(prudence_map_first_from(&walk, map, 21) == &items[2].number);
    HANDLER_CHECK(prudence_map_first_from_bytes(&walk, map_strings, "b0", 2) ==
                  &items[2].bytes.node);
    prudence_read_unlock();
}

static void map_value(unsigned depth)
{
    const struct prudence_map_node *node;

    (void)depth;
    prudence_read_lock();
    HANDLER_CHECK(prudence_map_values_get(map_values, 40) == &items[3]);
    HANDLER_CHECK(prudence_map_values_get_bytes(map_string_values, names[3], 2) == &items[3]);
    node = prudence_map_lowest(prudence_map_values_nodes(map_values));
    HANDLER_CHECK(prudence_map_values_value(node) == &items[0]);
    prudence_read_unlock();
}

static void id(unsigned depth)
{
    struct prudence_id_table_walk walk;
    unsigned count = 1;

    (void)depth;
    prudence_read_lock();
    HANDLER_CHECK(prudence_id_table_lookup(ids, 2) == &items[2]);
    HANDLER_CHECK(prudence_id_table_first_from(&walk, ids, 3) == &items[3]);
    HANDLER_CHECK(prudence_id_table_first(&walk, ids) == &items[0]);
    while (prudence_id_table_next(&walk))
        count++;
    prudence_read_unlock();
    HANDLER_CHECK(count == MANY);
}

static const struct prudence_routes_prefix prefix4 = {.address = {10}, .length = 8};
static const struct prudence_routes_prefix prefix6 = {.address = {0x20, 1}, .length = 16};
static const unsigned char address4[8] = {10, 1, 2, 3, 11};
static const unsigned char address6[16] = {0x20, 1, 7};

static void route(unsigned depth)
{
    uintptr_t found[2];

    (void)depth;
    prudence_read_lock();
    HANDLER_CHECK(prudence_routes_lookup_ipv4(routes4, address4) == 4);
    HANDLER_CHECK(prudence_routes_lookup_ipv6(routes6, address6) == 6);
    prudence_routes_lookup_many_ipv4(routes4, address4, 2, found);
    HANDLER_CHECK(found[0] == 4 && found[1] == 0);
    prudence_read_unlock();
}

static void route_walk(unsigned depth)
{
    struct prudence_routes_walk walk;

    (void)depth;
    prudence_read_lock();
    HANDLER_CHECK(prudence_routes_get(routes4, &prefix4) == 4);
    HANDLER_CHECK(prudence_routes_first(&walk, routes4, NULL) == 4);
    HANDLER_CHECK(!prudence_routes_next(&walk));
    prudence_read_unlock();
}

static void swap(unsigned depth)
{
    (void)depth;
    prudence_read_lock();
    HANDLER_CHECK(prudence_swap_get(&handle) == &items[0]);
    prudence_read_unlock();
}

static void hashes(unsigned depth)
{
    static const struct prudence_hash_secret secret;

    (void)depth;
    HANDLER_CHECK(prudence_hash_number(&secret, 1) ==
                  prudence_hash_bytes(&secret, "\1\0\0\0\0\0\0", 8));
}

/* ------------------------------------------------------------------------------------- updates */

/* All in one bucket, each with keys of its own. */
static void lockfree_add(unsigned depth)
{
    const uint64_t key = 100 + depth;
    struct item *item = fresh(key), *other = fresh(key);
    struct prudence_hash_node *there;

    prudence_read_lock();
    HANDLER_CHECK(!prudence_lockfree_hash_add(lockfree, HASH, matches, &key, &item->node, NULL));
    HANDLER_CHECK(prudence_lockfree_hash_add(lockfree, HASH, matches, &key, &other->node, &there));
    HANDLER_CHECK(there == &item->node);
    HANDLER_CHECK(prudence_lockfree_hash_lookup(lockfree, HASH, matches, &key) == there);
    HANDLER_CHECK(!prudence_lockfree_hash_remove(lockfree, there));
    prudence_read_unlock();
}

static void lockfree_duplicate(unsigned depth)
{
    const uint64_t key = 200 + depth;
    struct item *item = fresh(key), *other = fresh(key);
    struct prudence_hash_node *found;

    prudence_read_lock();
    HANDLER_CHECK(!prudence_lockfree_hash_add_duplicate(lockfree, HASH, &item->node));
    HANDLER_CHECK(!prudence_lockfree_hash_add_duplicate(lockfree, HASH, &other->node));
    found = prudence_lockfree_hash_lookup(lockfree, HASH, matches, &key);
    HANDLER_CHECK(found && prudence_lockfree_hash_next_duplicate(found, matches, &key));
    HANDLER_CHECK(!prudence_lockfree_hash_remove(lockfree, &item->node));
    HANDLER_CHECK(!prudence_lockfree_hash_remove(lockfree, &other->node));
    prudence_read_unlock();
}

static void lockfree_put(unsigned depth)
{
    const uint64_t key = 300 + depth;
    struct item *item = fresh(key), *second = fresh(key), *third = fresh(key);
    struct prudence_hash_node *old;

    prudence_read_lock();
    HANDLER_CHECK(!prudence_lockfree_hash_put(lockfree, HASH, matches, &key, &item->node, &old));
    HANDLER_CHECK(!old);
    HANDLER_CHECK(!prudence_lockfree_hash_put(lockfree, HASH, matches, &key, &second->node, &old));
    HANDLER_CHECK(old == &item->node);
    HANDLER_CHECK(!prudence_lockfree_hash_replace(lockfree, &second->node, &third->node));
    HANDLER_CHECK(!prudence_lockfree_hash_remove(lockfree, &third->node));
    prudence_read_unlock();
}

static void lockfree_walk(unsigned depth)
{
    struct prudence_lockfree_hash_walk walk;
    struct prudence_lockfree_hash_stats stats;
    struct prudence_hash_node *node;

    prudence_read_lock();
    node = prudence_lockfree_hash_first(&walk, lockfree);
    HANDLER_CHECK(node && (depth || !prudence_lockfree_hash_next(&walk)));
    HANDLER_CHECK(!prudence_lockfree_hash_stats_sized(lockfree, &stats, sizeof stats));
    prudence_read_unlock();
}

static void push(unsigned depth)
{
    struct item *item = fresh(0), *other = fresh(0);

    (void)depth;
    prudence_stack_push(&stack, &item->place);
    prudence_stack_push(&stack, &other->place);
    prudence_read_lock();
    HANDLER_CHECK(!prudence_stack_is_empty(&stack));
    HANDLER_CHECK(prudence_stack_pop(&stack) == &other->place);
    HANDLER_CHECK(prudence_stack_pop(&stack) == &item->place);
    prudence_read_unlock();
}

/* A handler takes what the interrupted thread has pushed, and only that thread misses it. */
static void take_all(unsigned depth)
{
    struct item *item = fresh(0);
    struct prudence_stack_node *taken;

    prudence_stack_push(&stack, &item->place);
    taken = depth ? prudence_stack_pop(&stack) : prudence_stack_take_all(&stack);
    HANDLER_CHECK(taken == &item->place && (depth || !prudence_stack_below(taken)));
}

static void count(unsigned depth)
{
    prudence_counter_add(counter, 3);
    HANDLER_CHECK(prudence_counter_sum(counter) >= (depth ? 0 : 3));
    prudence_counter_add(counter, -3);
}

static void refer(unsigned depth)
{
    struct prudence_ref own;

    (void)depth;
    prudence_ref_init(&own, 1);
    prudence_ref_get(&own);
    HANDLER_CHECK(prudence_ref_count(&own) == 2 && !prudence_ref_put(&own) &&
                  prudence_ref_put(&own));
    HANDLER_CHECK(prudence_ref_get_unless_zero(&references));
    HANDLER_CHECK(!prudence_ref_put(&references));
}

static void log_entry(unsigned depth)
{
    unsigned *place;

    prudence_read_lock();
    place = prudence_log_reserve(logged, sizeof *place);
    HANDLER_CHECK(place);
    if (place)
        *place = depth + 1;
    prudence_read_unlock();
}

const struct handler_body handler_bodies[] = {BODY(hash_lookup),
                                              BODY(hash_walk),
                                              BODY(hash_value),
                                              BODY(hash_value_walk),
                                              BODY(map_number),
                                              BODY(map_neighbour),
                                              BODY(map_string),
                                              BODY(map_walk),
                                              BODY(map_walk_from),
                                              BODY(map_value),
                                              BODY(id),
                                              BODY(route),
                                              BODY(route_walk),
                                              BODY(swap),
                                              BODY(hashes),
                                              BODY(lockfree_add),
                                              BODY(lockfree_duplicate),
                                              BODY(lockfree_put),
                                              BODY(lockfree_walk),
                                              BODY(push),
                                              BODY(take_all),
                                              MOVES(count),
                                              BODY(refer),
                                              BODY(log_entry)};
const unsigned handler_body_count = sizeof handler_bodies / sizeof handler_bodies[0];

/* --------------------------------------------------------------------------------- afterwards */

static void look_at_log(void *unused, const void *entries, size_t bytes)
{
    (void)unused;
    for (size_t at = 0; at < bytes; at += 8)
        HANDLER_CHECK(*(const unsigned *)((const char *)entries + at) == 1 ||
                      *(const unsigned *)((const char *)entries + at) == 2);
}

/* All are as before: one object in the table without locks, and nothing removed is linked. */
void handler_steps_check(void)
{
    struct prudence_lockfree_hash_stats stats;

    prudence_lockfree_hash_stats(lockfree, &stats);
    HANDLER_CHECK(stats.objects == 1 && stats.removed == 0);
    HANDLER_CHECK(prudence_stack_is_empty(&stack) && prudence_counter_sum(counter) == 0);
    HANDLER_CHECK(prudence_ref_count(&references) == 1);
    HANDLER_CHECK(!prudence_log_flush(logged, look_at_log, NULL));
    HANDLER_CHECK(prudence_log_dropped(logged) == 0);
    fresh_used = 0;
}

static void set_up_tables(void)
{
    const struct prudence_hash_values_attr of_strings = {.size = sizeof of_strings,
                                                         .flags = PRUDENCE_HASH_VALUES_BYTES};
    const struct prudence_map_attr map_of_strings = {.size = sizeof map_of_strings,
                                                     .flags = PRUDENCE_MAP_BYTES};
    const struct prudence_map_values_attr values_of_strings = {.size = sizeof values_of_strings,
                                                               .flags = PRUDENCE_MAP_VALUES_BYTES};
    const struct prudence_routes_attr ipv6 = {.size = sizeof ipv6, .family = PRUDENCE_ROUTES_IPV6};

    hash = prudence_hash_create("hash", NULL);
    values = prudence_hash_values_create("values", NULL);
    strings = prudence_hash_values_create("strings", &of_strings);
    map = prudence_map_create("map", NULL);
    map_strings = prudence_map_create("map", &map_of_strings);
    map_values = prudence_map_values_create("values", NULL);
    map_string_values = prudence_map_values_create("values", &values_of_strings);
    ids = prudence_id_table_create("ids", NULL);
    routes4 = prudence_routes_create("routes", NULL);
    routes6 = prudence_routes_create("routes", &ipv6);
    lockfree = prudence_lockfree_hash_create("lockfree", NULL);
    counter = prudence_counter_create();
    logged = prudence_log_create(1 << 16, NULL);
}

static void fill(unsigned i)
{
    struct item *item = &items[i];
    uint32_t number;

    item->key = item->number.key = 10 * (i + 1);
    names[i][0] = (char)('a' + i);
    prudence_map_set_bytes(&item->bytes, names[i], 2);
    assert_false(prudence_hash_add(hash, HASH, matches, &item->key, &item->node, NULL));
    assert_false(prudence_hash_values_add(values, item->key, item, NULL));
    assert_false(prudence_hash_values_add_bytes(strings, names[i], 2, item, NULL));
    assert_false(prudence_map_add(map, &item->number, NULL));
    assert_false(prudence_map_add(map_strings, &item->bytes.node, NULL));
    assert_false(prudence_map_values_add(map_values, item->key, item, NULL));
    assert_false(prudence_map_values_add_bytes(map_string_values, names[i], 2, item, NULL));
    assert_false(prudence_id_table_add(ids, item, &number));
}

TEST(handlers_come_between_any_two_instructions)
{
    static struct item only;

    set_up_tables();
    for (unsigned i = 0; i < MANY; i++)
        fill(i);
    assert_false(prudence_routes_add(routes4, &prefix4, 4, NULL));
    assert_false(prudence_routes_add(routes6, &prefix6, 6, NULL));
    assert_false(prudence_lockfree_hash_add_duplicate(lockfree, HASH + 1, &only.node));
    prudence_ref_init(&references, 1);
    prudence_swap_init(&handle, &items[0]);
    handler_steps_all(false);
}

SUITE()
