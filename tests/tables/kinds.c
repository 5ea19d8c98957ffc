/* SPDX-License-Identifier: MIT */
/* See kinds.h. */
#include "tables/kinds.h"

#include <stddef.h>

#include <prudence/hash_values.h>
#include <prudence/id_table.h>
#include <prudence/lockfree_hash.h>
#include <prudence/map_values.h>

#include "support/hash_invariants.h"
#include "support/map_invariants.h"
#include "support/routes_test.h"
#include "tables/hash_values.h"
#include "tables/keys.h"

/* ----------------------------------------------------------------------------------- all tables */

static table_dispose *dispose_entry;

static struct entry *of_node(struct prudence_hash_node *node)
{
    return node ? prudence_hash_entry(node, struct entry, node) : NULL;
}

static struct entry *of_place(struct prudence_map_node *node)
{
    return node ? prudence_map_entry(node, struct entry, place.node) : NULL;
}

static void dispose_node(struct prudence_hash_node *node, void *argument)
{
    dispose_entry(of_node(node), argument);
}

static void dispose_place(struct prudence_map_node *node, void *argument)
{
    dispose_entry(of_place(node), argument);
}

static void dispose_value(void *value, void *argument)
{
    dispose_entry(value, argument);
}

static uint64_t lockfree_hash_count(const void *table)
{
    struct prudence_lockfree_hash_stats stats = {.objects = 0};

    prudence_lockfree_hash_stats(table, &stats);
    return stats.objects;
}

static int routes_destroy(struct prudence_routes *table, void *unused, void *argument)
{
    return prudence_routes_destroy(table);
}

/* What all tables have. */
#define TABLE(what, destroys, disposes, counts, stats_of, objects, latent)                         \
    static void *what##_create(const char *name, const void *attr)                                 \
    {                                                                                              \
        return prudence_##what##_create(name, attr);                                               \
    }                                                                                              \
    static int what##_destroy_with(void *table, table_dispose *dispose, void *argument)            \
    {                                                                                              \
        dispose_entry = dispose;                                                                   \
        return destroys(table, dispose ? disposes : NULL, argument);                               \
    }                                                                                              \
    static uint64_t what##_objects(const void *table)                                              \
    {                                                                                              \
        return counts(table);                                                                      \
    }                                                                                              \
    static int what##_stats(void *table, struct table_stats *stats)                                \
    {                                                                                              \
        struct prudence_##stats_of##_stats now = {.objects = 0};                                   \
        int error = prudence_##what##_stats(table, stats ? &now : NULL);                           \
                                                                                                   \
        if (!error)                                                                                \
            *stats = (struct table_stats){now.objects, now.bytes_live, latent};                    \
        return error;                                                                              \
    }
#define TABLE_OF(what, disposes, stats_of)                                                         \
    TABLE(what, prudence_##what##_destroy, disposes, prudence_##what##_count, stats_of, objects,   \
          now.bytes_latent)

TABLE_OF(hash, dispose_node, hash)
TABLE(lockfree_hash, prudence_lockfree_hash_destroy, dispose_node, lockfree_hash_count,
      lockfree_hash, objects, 0)
TABLE_OF(map, dispose_place, map)
TABLE_OF(hash_values, dispose_value, hash)
TABLE_OF(map_values, dispose_value, map)
TABLE_OF(id_table, dispose_value, id_table)
TABLE(routes, routes_destroy, NULL, prudence_routes_count, routes, prefixes, now.bytes_latent)

/* ----------------------------------------------------------------------------- tables of hashes */

static uint64_t mixed(uint64_t number)
{
    return prudence_hash_mix(number);
}

uint64_t (*table_hash)(uint64_t number) = mixed;
void (*table_compares)(void);
bool tables_are_shared;

static struct prudence_hash_node *node_in(struct entry *entry)
{
    return entry ? &entry->node : NULL;
}

/* Gives the entry a key. */
static struct prudence_hash_node *hashed(struct entry *entry, unsigned key)
{
    if (entry)
        entry->key = key;
    return node_in(entry);
}

static bool has_key(const struct prudence_hash_node *node, const void *key)
{
    if (table_compares)
        table_compares();
    return prudence_hash_entry(node, const struct entry, node)->key == *(const unsigned *)key;
}

static struct entry with_key_0; /* an update that stores nothing has found this */

static int found_there(int error, struct entry **found, struct prudence_hash_node *node)
{
    if (found)
        *found = of_node(node);
    return error;
}

/* The two tables differ in their names. */
#define HASH_KIND(what)                                                                            \
    static int what##_add(void *table, unsigned key, struct entry *entry, struct entry **found)    \
    {                                                                                              \
        struct prudence_hash_node *there = &with_key_0.node;                                       \
        int error = prudence_##what##_add(table, table_hash(key_numbers[key]), has_key, &key,      \
                                          hashed(entry, key), found ? &there : NULL);              \
                                                                                                   \
        return found_there(error, found, there);                                                   \
    }                                                                                              \
    static int what##_add_duplicate(void *table, unsigned key, struct entry *entry)                \
    {                                                                                              \
        return prudence_##what##_add_duplicate(table, table_hash(key_numbers[key]),                \
                                               hashed(entry, key));                                \
    }                                                                                              \
    static int what##_put(void *table, unsigned key, struct entry *entry, struct entry **found)    \
    {                                                                                              \
        struct prudence_hash_node *there = &with_key_0.node;                                       \
        int error = prudence_##what##_put(table, table_hash(key_numbers[key]), has_key, &key,      \
                                          hashed(entry, key), found ? &there : NULL);              \
                                                                                                   \
        return found_there(error, found, there);                                                   \
    }                                                                                              \
    static int what##_replace(void *table, unsigned key, struct entry *old, struct entry *fresh)   \
    {                                                                                              \
        return prudence_##what##_replace(table, node_in(old), hashed(fresh, key));                 \
    }                                                                                              \
    static int what##_remove(void *table, struct entry *entry)                                     \
    {                                                                                              \
        return prudence_##what##_remove(table, node_in(entry));                                    \
    }                                                                                              \
    static struct entry *what##_get(const void *table, unsigned key)                               \
    {                                                                                              \
        return of_node(                                                                            \
            prudence_##what##_lookup(table, table_hash(key_numbers[key]), has_key, &key));         \
    }                                                                                              \
    static struct entry *what##_next_duplicate(const struct entry *entry)                          \
    {                                                                                              \
        return of_node(prudence_##what##_next_duplicate(&entry->node, has_key, &entry->key));      \
    }                                                                                              \
    static int what##_erase(void *table, unsigned key, struct entry **found)                       \
    {                                                                                              \
        struct entry *there = table ? what##_get(table, key) : NULL;                               \
        int error = table && !there ? ENOENT : what##_remove(table, there);                        \
                                                                                                   \
        if (found)                                                                                 \
            *found = error ? NULL : there;                                                         \
        return error;                                                                              \
    }                                                                                              \
    static void what##_walk(void *table, table_visit *visit, void *argument)                       \
    {                                                                                              \
        struct prudence_##what##_walk walk;                                                        \
        struct prudence_hash_node *node;                                                           \
                                                                                                   \
        prudence_##what##_for_each(&walk, table, node)                                             \
            visit(of_node(node)->key, of_node(node), argument);                                    \
        assert_null(prudence_##what##_next(&walk)); /* at the end it stays there */                \
    }

HASH_KIND(hash)
HASH_KIND(lockfree_hash)

static void hash_check(void *table)
{
    check_chains(table);
}

static void lockfree_hash_check(void *table)
{
    struct prudence_lockfree_hash_stats stats = {.removed = 1};

    assert_int_equal(prudence_lockfree_hash_stats(table, &stats), 0);
    assert_int_equal(stats.removed, 0);
}

/* --------------------------------------------------------------------------------- ordered maps */

static bool of_strings(const void *map)
{
    return map && ((const struct prudence_map *)map)->bytes;
}

/* Gives the entry a key. */
static struct prudence_map_node *keyed(const void *map, struct entry *entry, unsigned key)
{
    if (!entry)
        return NULL;
    entry->key = key;
    if (of_strings(map))
        prudence_map_set_bytes(&entry->place, key_strings[key].bytes, key_strings[key].length);
    else
        entry->place.node.key = key_numbers[key];
    return &entry->place.node;
}

static int found_place(int error, struct entry **found, struct prudence_map_node *node)
{
    if (found)
        *found = of_place(node);
    return error;
}

static int map_add(void *map, unsigned key, struct entry *entry, struct entry **found)
{
    struct prudence_map_node *there = &with_key_0.place.node;
    int error = prudence_map_add(map, keyed(map, entry, key), found ? &there : NULL);

    return found_place(error, found, there);
}

static int map_put(void *map, unsigned key, struct entry *entry, struct entry **found)
{
    struct prudence_map_node *there = &with_key_0.place.node;
    int error = prudence_map_put(map, keyed(map, entry, key), found ? &there : NULL);

    return found_place(error, found, there);
}

static int map_replace(void *map, unsigned key, struct entry *old, struct entry *fresh)
{
    return prudence_map_replace(map, old ? &old->place.node : NULL, keyed(map, fresh, key));
}

static int map_remove(void *map, struct entry *entry)
{
    return prudence_map_remove(map, entry ? &entry->place.node : NULL);
}

static int map_erase(void *map, unsigned key, struct entry **found)
{
    struct prudence_map_node *there = &with_key_0.place.node, **tell = found ? &there : NULL;
    int error = of_strings(map) ? prudence_map_erase_bytes(map, key_strings[key].bytes,
                                                           key_strings[key].length, tell)
                                : prudence_map_erase(map, key_numbers[key], tell);

    return found_place(error, found, there);
}

#define SEARCH(how, ...)                                                                           \
    (of_strings(map) ? prudence_map_##how##_bytes(__VA_ARGS__, key_strings[key].bytes,             \
                                                  key_strings[key].length)                         \
                     : prudence_map_##how(__VA_ARGS__, key_numbers[key]))

static struct entry *map_get(const void *map, unsigned key)
{
    return of_place(SEARCH(lookup, map));
}

struct prudence_map_node *table_ceiling(const void *map, unsigned key)
{
    return SEARCH(ceiling, map);
}

struct prudence_map_node *table_floor(const void *map, unsigned key)
{
    return SEARCH(floor, map);
}

struct prudence_map_node *table_first_from(struct prudence_map_walk *walk, const void *map,
                                           unsigned key)
{
    return SEARCH(first_from, walk, map);
}

static void map_walk(void *map, table_visit *visit, void *argument)
{
    struct prudence_map_walk walk;
    struct prudence_map_node *node;

    prudence_map_for_each(&walk, map, node) visit(of_place(node)->key, of_place(node), argument);
    assert_null(prudence_map_next(&walk));
}

static void map_check(void *map)
{
    check_map(map, true);
}

/* -------------------------------------------------------------------------------- tables of values
 * A string is given at an address where it does not stay. */

#define NUMBER(key)      key_numbers[key]
#define BYTES(key)       given.bytes, given.length
#define GIVE_NUMBER(key) (void)0
#define GIVE_BYTES(key)                                                                            \
    struct key_string given = {.length = key_strings[key].length};                                 \
    memcpy(given.bytes, key_strings[key].bytes, given.length)
#define TAKE_NUMBER() (void)0
#define TAKE_BYTES()  explicit_bzero(given.bytes, given.length)

/* An update `call` as a function. */
#define VALUES_UPDATE(name, kind, call, suffix, KEY, arguments, ...)                               \
    static int name arguments                                                                      \
    {                                                                                              \
        GIVE_##KEY(key);                                                                           \
        int error = prudence_##kind##_##call##suffix(table, KEY(key), __VA_ARGS__);                \
                                                                                                   \
        TAKE_##KEY();                                                                              \
        return error;                                                                              \
    }

#define VALUES_KEYED(name, kind, suffix, KEY)                                                      \
    VALUES_UPDATE(name##_add, kind, add, suffix, KEY,                                              \
                  (void *table, unsigned key, struct entry *entry, struct entry **found), entry,   \
                  (void **)found)                                                                  \
    VALUES_UPDATE(name##_put, kind, put, suffix, KEY,                                              \
                  (void *table, unsigned key, struct entry *entry, struct entry **found), entry,   \
                  (void **)found)                                                                  \
    VALUES_UPDATE(name##_replace, kind, replace, suffix, KEY,                                      \
                  (void *table, unsigned key, struct entry *old, struct entry *fresh), old, fresh) \
    VALUES_UPDATE(name##_erase, kind, erase, suffix, KEY,                                          \
                  (void *table, unsigned key, struct entry **found), (void **)found)               \
    static struct entry *name##_get(const void *table, unsigned key)                               \
    {                                                                                              \
        GIVE_##KEY(key);                                                                           \
                                                                                                   \
        return prudence_##kind##_get##suffix(table, KEY(key));                                     \
    }

#define VALUES_KIND(kind)                                                                          \
    VALUES_KEYED(kind, kind, , NUMBER)                                                             \
    VALUES_KEYED(kind##_bytes, kind, _bytes, BYTES)

VALUES_KIND(hash_values)
VALUES_KIND(map_values)

static void hash_values_walk(void *table, table_visit *visit, void *argument)
{
    struct prudence_hash_values_walk walk;
    void *value;

    prudence_hash_values_for_each(&walk, table, value)
    {
        assert_true(walk.strings ? walk.key == 0 : !walk.bytes && !walk.length);
        visit(walk.strings ? key_of_bytes(walk.bytes, walk.length) : key_of_number(walk.key), value,
              argument);
    }
    assert_null(prudence_hash_values_next(&walk));
}

static struct entry *value_at(struct prudence_map_node *node)
{
    return node ? prudence_map_values_value(node) : NULL;
}

static void map_values_walk(void *map, table_visit *visit, void *argument)
{
    struct prudence_map_walk walk;
    struct prudence_map_node *node;

    prudence_map_for_each(&walk, prudence_map_values_nodes(map), node)
    {
        const struct map_key key = map_key_of(node, of_strings(map));

        visit(key.bytes ? key_of_bytes(key.bytes, key.length) : key_of_number(key.number),
              prudence_map_values_value(node), argument);
    }
}

static void hash_values_check(void *table)
{
    check_chains(&((struct prudence_hash_values *)table)->table->public);
}

/* -------------------------------------------------------------------------------- tables of ids */

#define NO_ID (UINT32_MAX - 1)

static uint32_t ids[KEYS_MOST]; /* where each key was last */

static struct entry *id_table_get(const void *table, unsigned key)
{
    struct entry *entry = prudence_id_table_lookup(table, load_relaxed(&ids[key]));

    return entry && entry->key == key ? entry : NULL;
}

/* Returns the identifier of the entry with this key, or NO_ID. In a section, because another thread
 * may take the entry out and free it. */
static uint32_t id_of(const void *table, unsigned key)
{
    uint32_t id;

    prudence_read_lock();
    id = id_table_get(table, key) ? load_relaxed(&ids[key]) : NO_ID;
    prudence_read_unlock();
    return id;
}

/* A key that has an identifier is there. Another one gets the lowest that is free. */
static int id_table_add(void *table, unsigned key, struct entry *entry, struct entry **found)
{
    struct entry *const there = table && entry ? id_table_get(table, key) : NULL;
    uint32_t id = 0, lowest = 0;
    int error;

    if (found)
        *found = there;
    if (there)
        return EEXIST;
    while (table && !tables_are_shared && prudence_id_table_lookup(table, lowest))
        lowest++;
    if (entry)
        entry->key = key;
    error = prudence_id_table_add(table, entry, &id);
    assert_true(error || id == lowest || tables_are_shared);
    if (!error)
        store_relaxed(&ids[key], id);
    return error;
}

static int id_table_swap(void *table, unsigned key, struct entry *fresh, struct entry **found)
{
    const uint32_t id = table ? id_of(table, key) : NO_ID;

    if (fresh)
        fresh->key = key;
    return prudence_id_table_replace(table, id, fresh, (void **)found);
}

static int id_table_erase(void *table, unsigned key, struct entry **found)
{
    return prudence_id_table_erase(table, table ? id_of(table, key) : NO_ID, (void **)found);
}

static void id_table_walk(void *table, table_visit *visit, void *argument)
{
    struct prudence_id_table_walk walk;
    struct entry *entry;
    uint32_t least = 0;

    prudence_id_table_for_each(&walk, table, entry)
    {
        assert_true(walk.id >= least);
        least = walk.id + 1;
        visit(entry->key, entry, argument);
    }
    assert_true(!prudence_id_table_next(&walk) || tables_are_shared);
}

static void id_table_check(void *table)
{
    struct prudence_id_table_walk walk;
    uint64_t there = 0;

    assert_null(prudence_id_table_lookup(table, UINT32_MAX));
    assert_null(prudence_id_table_lookup(table, 1u << 30));
    for (uint32_t id = 0; id < KEYS_MOST; id++) {
        void *object = prudence_id_table_lookup(table, id);

        there += object != NULL;
        if (object)
            assert_ptr_equal(prudence_id_table_first_from(&walk, table, id), object);
    }
    assert_int_equal(prudence_id_table_count(table), there);
}

/* --------------------------------------------------------------------------------------- routes */

/* Makes a table of IPv4 with areas where most prefixes of the tests are, if it may have areas. */
static void *areas_create(const char *name, const void *attr)
{
    static const unsigned char begins[][2] = {
        {0x00, 0x00}, {0x00, 0x20}, {0x00, 0x80}, {0x00, 0xff}, {0x20, 0x00}, {0x80, 0x00},
        {0x80, 0xff}, {0xff, 0x00}, {0xff, 0xff}, {10, 1},      {192, 0},     {200, 1}};
    struct prudence_routes *table = routes_create(name, attr);

    if (!table || !(table->index & PRUDENCE_ROUTES_AREAS))
        return table;
    for (unsigned i = 0; i < sizeof begins / sizeof begins[0]; i++)
        make_area(table, begins[i][0], begins[i][1]);
    return table;
}

static const struct prudence_routes_prefix *prefix_for(const void *table, unsigned key)
{
    return &key_prefixes[table && is_ipv6(table)][key];
}

static int routes_add(void *table, unsigned key, struct entry *entry, struct entry **found)
{
    return prudence_routes_add(table, prefix_for(table, key), (uintptr_t)entry, (uintptr_t *)found);
}

static int routes_swap(void *table, unsigned key, struct entry *fresh, struct entry **found)
{
    return prudence_routes_replace(table, prefix_for(table, key), (uintptr_t)fresh,
                                   (uintptr_t *)found);
}

static int routes_erase(void *table, unsigned key, struct entry **found)
{
    return prudence_routes_erase(table, prefix_for(table, key), (uintptr_t *)found);
}

static struct entry *routes_get(const void *table, unsigned key)
{
    return (struct entry *)prudence_routes_get(table, prefix_for(table, key));
}

static void routes_walk(void *table, table_visit *visit, void *argument)
{
    struct prudence_routes_walk walk;
    uintptr_t value;

    prudence_routes_for_each(&walk, table, NULL, value)
        visit(key_of_prefix(is_ipv6(table), &walk.prefix), (struct entry *)value, argument);
    assert_true(!prudence_routes_next(&walk) || tables_are_shared);
}

static void routes_check(void *table)
{
    check_trie(table);
}

/* ------------------------------------------------------------------------------------ all kinds */

#define OF_HASH        (TABLE_OBJECTS | TABLE_ROOM | TABLE_ROOM_TO_CHANGE)
#define OF_HASH_VALUES (TABLE_DOMAIN | TABLE_DEFERS | TABLE_ROOM | TABLE_ROOM_TO_CHANGE)
#define OF_MAP_VALUES  (TABLE_SORTED | TABLE_DOMAIN | TABLE_DEFERS | TABLE_ROOM)
#define OF_MAP         (OF_MAP_VALUES | TABLE_OBJECTS | TABLE_ROOM_TO_CHANGE)
#define OF_IDS         (TABLE_DOMAIN | TABLE_CHOOSES | TABLE_ROOM | TABLE_ROOM_TO_CHANGE)
#define OF_ROUTES      (TABLE_SORTED | TABLE_DOMAIN | TABLE_DEFERS | TABLE_KEEPS)
#define ATTR(kind, ...)                                                                            \
    .attr = &(const struct prudence_##kind##_attr){.size = sizeof(struct prudence_##kind##_attr),  \
                                                   __VA_ARGS__},                                   \
    .attr_size = sizeof(struct prudence_##kind##_attr)
#define DOMAIN_OF(kind) .domain_at = offsetof(struct prudence_##kind##_attr, domain)
#define OPERATIONS(kind)                                                                           \
    .create = kind##_create, .destroy = kind##_destroy_with, .count = kind##_objects,              \
    .stats = kind##_stats, .walk = kind##_walk, .check = kind##_check
#define HASHED(kind)                                                                               \
    OPERATIONS(kind), .keys = &key_number_count, .add = kind##_add,                                \
                      .add_duplicate = kind##_add_duplicate, .put = kind##_put,                    \
                      .replace = kind##_replace, .remove = kind##_remove, .erase = kind##_erase,   \
                      .get = kind##_get, .next_duplicate = kind##_next_duplicate
#define MAPPED                                                                                     \
    OPERATIONS(map), .add = map_add, .put = map_put, .replace = map_replace, .remove = map_remove, \
                     .erase = map_erase, .get = map_get, .at = of_place
#define VALUED(kind, keyed)                                                                        \
    OPERATIONS(kind), .add = keyed##_add, .put = keyed##_put, .replace = keyed##_replace,          \
                      .erase = keyed##_erase, .get = keyed##_get
#define ROUTED(kind, family)                                                                       \
    OPERATIONS(kind), .keys = &key_prefix_counts[family], .add = routes_add, .swap = routes_swap,  \
                      .erase = routes_erase, .get = routes_get

#define map_values_check   map_check
#define areas_destroy_with routes_destroy_with
#define areas_objects      routes_objects
#define areas_stats        routes_stats
#define areas_walk         routes_walk
#define areas_check        routes_check

const struct table_kind table_kinds[TABLE_KINDS] = {
    [TABLE_HASH] = {"hash table", OF_HASH | TABLE_DOMAIN, HASHED(hash), ATTR(hash),
                    DOMAIN_OF(hash)},
    [TABLE_LOCKFREE_HASH] = {"hash table without locks", OF_HASH, HASHED(lockfree_hash),
                             ATTR(lockfree_hash)},
    [TABLE_MAP] = {"map of numbers", OF_MAP, .keys = &key_number_count, MAPPED, ATTR(map),
                   DOMAIN_OF(map)},
    [TABLE_MAP_BYTES] = {"map of strings", OF_MAP, .keys = &key_string_count, MAPPED,
                         ATTR(map, .flags = PRUDENCE_MAP_BYTES), DOMAIN_OF(map)},
    [TABLE_HASH_VALUES] = {"values by hash of a number", OF_HASH_VALUES, .keys = &key_number_count,
                           VALUED(hash_values, hash_values), ATTR(hash_values),
                           DOMAIN_OF(hash_values)},
    [TABLE_HASH_VALUES_BYTES] = {"values by hash of a string", OF_HASH_VALUES,
                                 .keys = &key_string_count, VALUED(hash_values, hash_values_bytes),
                                 ATTR(hash_values, .flags = PRUDENCE_HASH_VALUES_BYTES),
                                 DOMAIN_OF(hash_values)},
    [TABLE_MAP_VALUES] = {"values in the order of numbers", OF_MAP_VALUES,
                          .keys = &key_number_count, VALUED(map_values, map_values), .at = value_at,
                          ATTR(map_values), DOMAIN_OF(map_values)},
    [TABLE_MAP_VALUES_BYTES] = {"values in the order of strings", OF_MAP_VALUES,
                                .keys = &key_string_count, VALUED(map_values, map_values_bytes),
                                .at = value_at,
                                ATTR(map_values, .flags = PRUDENCE_MAP_VALUES_BYTES),
                                DOMAIN_OF(map_values)},
    [TABLE_IDS] = {"table of ids", OF_IDS, .keys = &key_number_count, OPERATIONS(id_table),
                   .add = id_table_add, .swap = id_table_swap, .erase = id_table_erase,
                   .get = id_table_get, ATTR(id_table), DOMAIN_OF(id_table)},
    [TABLE_ROUTES_IPV4] = {"routes of IPv4", OF_ROUTES, ROUTED(routes, PRUDENCE_ROUTES_IPV4),
                           ATTR(routes), DOMAIN_OF(routes)},
    [TABLE_ROUTES_IPV6] = {"routes of IPv6", OF_ROUTES, ROUTED(routes, PRUDENCE_ROUTES_IPV6),
                           ATTR(routes, .family = PRUDENCE_ROUTES_IPV6), DOMAIN_OF(routes)},
    [TABLE_ROUTES_AREAS] = {"routes of IPv4 with areas", OF_ROUTES | TABLE_PREPARED,
                            ROUTED(areas, PRUDENCE_ROUTES_IPV4), ATTR(routes, .prefixes = 1 << 11),
                            DOMAIN_OF(routes)},
};

void *table_make(const struct table_kind *of, struct prudence_domain *domain)
{
    union {
        struct prudence_hash_attr largest;
        char bytes[sizeof(struct prudence_hash_attr)];
    } attr;
    void *table;

    keys_make();
    assert_true(of->attr_size <= sizeof attr);
    memcpy(&attr, of->attr, of->attr_size);
    if (domain)
        memcpy(attr.bytes + of->domain_at, &domain, sizeof domain);
    assert_true(!domain || of->flags & TABLE_DOMAIN);
    table = of->create("test", &attr);
    assert_non_null(table);
    return table;
}

/* --------------------------------------------------------------------------- tests of all kinds */

#define RUNS_MOST 400

const struct table_kind *tested;

static struct run {
    const struct table_case *of;
    const struct table_kind *with;
    char name[120];
} runs[RUNS_MOST];

static void run_case(void **state)
{
    const struct run *run = *state;

    tested = run->with;
    run->of->run();
}

int table_cases_run(const struct table_case *cases, unsigned count)
{
    static struct CMUnitTest tests[RUNS_MOST];
    size_t all = 0;

    keys_make();
    for (unsigned i = 0; i < count; i++)
        for (const struct table_kind *of = table_kinds; of < table_kinds + TABLE_KINDS; of++) {
            struct run *run = &runs[all];

            if ((of->flags & cases[i].wanted) != cases[i].wanted || of->flags & cases[i].unwanted)
                continue;
            *run = (struct run){.of = &cases[i], .with = of};
            snprintf(run->name, sizeof run->name, "%s: %s", cases[i].name, of->name);
            tests[all++] = (struct CMUnitTest){run->name, run_case, NULL, NULL, run};
        }
    return _cmocka_run_group_tests("tests", tests, all, NULL, NULL);
}
