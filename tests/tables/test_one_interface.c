/* SPDX-License-Identifier: MIT */
/*
 * The rules that all tables share (docs/adr/0134): attributes of programs that were compiled with
 * other revisions; destruction with and without a function that takes the objects; updates that
 * store what they found, whatever they return; small structures that say why they stay.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

#include <prudence/counter.h>
#include <prudence/hash_rename.h>
#include <prudence/log.h>
#include <prudence/routes.h>

#include "support/gp_child.h"
#include "support/updates.h"

#define OBJECTS 1000u

/* ----------------------------------------------------------------------------------- attributes */

/* Creates and destroys a table of this name, with these attributes. Returns whether there was
 * one. */
static bool makes_hash(const char *name, const void *attr)
{
    struct prudence_hash *table = prudence_hash_create(name, attr);

    return table && prudence_hash_destroy(table, NULL, NULL) == 0;
}

static bool makes_hash_values(const char *name, const void *attr)
{
    struct prudence_hash_values *table = prudence_hash_values_create(name, attr);

    return table && prudence_hash_values_destroy(table, NULL, NULL) == 0;
}

static bool makes_lockfree_hash(const char *name, const void *attr)
{
    struct prudence_lockfree_hash *table = prudence_lockfree_hash_create(name, attr);

    return table && prudence_lockfree_hash_destroy(table, NULL, NULL) == 0;
}

static bool makes_id_table(const char *name, const void *attr)
{
    struct prudence_id_table *table = prudence_id_table_create(name, attr);

    return table && prudence_id_table_destroy(table, NULL, NULL) == 0;
}

static bool makes_map(const char *name, const void *attr)
{
    struct prudence_map *map = prudence_map_create(name, attr);

    return map && prudence_map_destroy(map, NULL, NULL) == 0;
}

static bool makes_map_values(const char *name, const void *attr)
{
    struct prudence_map_values *map = prudence_map_values_create(name, attr);

    return map && prudence_map_values_destroy(map, NULL, NULL) == 0;
}

static bool makes_routes(const char *name, const void *attr)
{
    struct prudence_routes *table = prudence_routes_create(name, attr);

    return table && prudence_routes_destroy(table) == 0;
}

static const struct {
    bool (*makes)(const char *name, const void *attr);
    size_t size; /* of the attributes that this library knows */
} tables[] = {
    {makes_hash, sizeof(struct prudence_hash_attr)},
    {makes_hash_values, sizeof(struct prudence_hash_values_attr)},
    {makes_lockfree_hash, sizeof(struct prudence_lockfree_hash_attr)},
    {makes_id_table, sizeof(struct prudence_id_table_attr)},
    {makes_map, sizeof(struct prudence_map_attr)},
    {makes_map_values, sizeof(struct prudence_map_values_attr)},
    {makes_routes, sizeof(struct prudence_routes_attr)},
};
#define TABLES (sizeof tables / sizeof tables[0])

/* Attributes of any size, with one byte that is not 0. */
static union {
    size_t size;
    unsigned char bytes[8192];
} attr;

static void attributes_of(size_t size, size_t set_byte)
{
    memset(&attr, 0, sizeof attr);
    attr.size = size;
    attr.bytes[set_byte] = 1;
}

static void refuses(bool (*makes)(const char *name, const void *attr), const char *name,
                    const void *given)
{
    errno = 0;
    assert_false(makes(name, given));
    assert_int_equal(errno, EINVAL);
}

TEST(attributes_of_any_revision_are_taken)
{
    for (unsigned i = 0; i < TABLES; i++) {
        assert_true(tables[i].makes("test", NULL));
        /* Only members within the size count. The byte after them is garbage. */
        for (size_t size = sizeof attr.size; size <= tables[i].size + 16; size += 8) {
            attributes_of(size, size);
            assert_true(tables[i].makes("test", &attr));
        }
        attributes_of(4096, 4096);
        assert_true(tables[i].makes("test", &attr));
    }
}

TEST(unknown_members_are_refused)
{
    for (unsigned i = 0; i < TABLES; i++) {
        for (size_t byte = tables[i].size; byte < 256; byte++) {
            attributes_of(256, byte);
            refuses(tables[i].makes, "test", &attr);
        }
    }
}

TEST(sizes_that_no_revision_has_are_refused)
{
    static const size_t sizes[] = {0, 1, 7, 9, 4104, 8192, SIZE_MAX / 8 * 8, SIZE_MAX};

    for (unsigned i = 0; i < TABLES; i++) {
        for (unsigned j = 0; j < sizeof sizes / sizeof sizes[0]; j++) {
            attributes_of(sizes[j], sizeof attr - 1);
            refuses(tables[i].makes, "test", &attr);
        }
    }
}

TEST(tables_without_a_name_are_refused)
{
    for (unsigned i = 0; i < TABLES; i++) {
        refuses(tables[i].makes, NULL, NULL);
        refuses(tables[i].makes, "", NULL);
    }
}

#define ATTRIBUTES(kind, ...)                                                                      \
    (&(struct prudence_##kind##_attr){.size = sizeof(struct prudence_##kind##_attr), __VA_ARGS__})
#define ATTR(kind, ...) makes_##kind, ATTRIBUTES(kind, __VA_ARGS__)

TEST(values_that_no_member_has_are_refused)
{
    const struct {
        bool (*makes)(const char *name, const void *attr);
        const void *attr;
    } bad[] = {
        {ATTR(hash, .flags = 1u << 7)},
        {ATTR(hash, .flags = PRUDENCE_HASH_VALUES_BYTES)}, /* a flag of tables of values */
        {ATTR(hash, .reserved = 1)},
        {ATTR(hash, .buckets = UINT64_MAX)},
        {ATTR(hash, .buckets = 1000, .buckets_most = 999)},
        {ATTR(hash_values, .flags = PRUDENCE_HASH_FIXED)}, /* a flag of tables of objects */
        {ATTR(hash_values, .flags = PRUDENCE_HASH_VALUES_BYTES, .reserved = 1)},
        {ATTR(lockfree_hash, .buckets = (UINT64_C(1) << 40) + 1)},
        {ATTR(id_table, .ids = 5, .ids_most = 4)},
        {ATTR(map, .flags = 1u << 7)},
        {ATTR(map, .reserved = 1)},
        {ATTR(map_values, .flags = 1u << 7)},
        {ATTR(routes, .family = 2)},
        {ATTR(routes, .reserved = 1)},
    };

    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refuses(bad[i].makes, "test", bad[i].attr);
}

static int are_refused_in(void *of)
{
    struct prudence_domain *domain = of;
    const struct {
        bool (*makes)(const char *name, const void *attr);
        const void *attr;
    } bad[] = {
        {ATTR(hash, .domain = domain)},       {ATTR(hash_values, .domain = domain)},
        {ATTR(id_table, .domain = domain)},   {ATTR(map, .domain = domain)},
        {ATTR(map_values, .domain = domain)}, {ATTR(routes, .domain = domain)},
    };

    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refuses(bad[i].makes, "test", bad[i].attr);
    errno = 0;
    assert_null(prudence_log_create(64, domain));
    assert_int_equal(errno, EINVAL);
    return 0;
}

/* Readers of hazard pointers have none. A set with them and others has those of the others. */
TEST(domains_without_sections_are_refused)
{
    static const char *const what[] = {"hash_create: 'test'",       "hash_values_create: 'test'",
                                       "id_table_create: 'test'",   "map_create: 'test'",
                                       "map_values_create: 'test'", "routes_create: 'test'",
                                       "log_create: 'log'"};
    struct prudence_domain *hazard = prudence_domain_create("h", PRUDENCE_DOMAIN_HAZARD, NULL);
    struct prudence_domain *members[] = {hazard, prudence_default_domain()};
    struct prudence_domain *set = prudence_domain_create_set("both", members, 2);
    struct child_result result;
    char text[100];

    child_run(are_refused_in, hazard, &result);
    assert_true(child_exited_with(&result, 0));
    for (unsigned i = 0; i < sizeof what / sizeof what[0]; i++) {
        snprintf(text, sizeof text, "prudence_%s: the domain is of kind hazard", what[i]);
        assert_true(child_said(&result, text));
    }
    assert_true(makes_hash("test", ATTRIBUTES(hash, .domain = set)));
    assert_int_equal(prudence_domain_destroy(set), 0);
    assert_int_equal(prudence_domain_destroy(hazard), 0);
}

/* ---------------------------------------------------------------------------------- destruction */

/* Objects from malloc, so that AddressSanitizer sees a table that looks at a freed one. */
struct object {
    struct prudence_hash_node hash_node;
    struct prudence_map_node map_node;
    unsigned number;
};

static struct object *objects[OBJECTS];
static unsigned disposed;
static bool in_order;

static void make_objects(void)
{
    disposed = 0;
    in_order = true;
    for (unsigned i = 0; i < OBJECTS; i++) {
        objects[i] = malloc(sizeof *objects[i]);
        assert_non_null(objects[i]);
        objects[i]->map_node.key = objects[i]->number = i;
    }
}

static void dispose(void *of, void *argument)
{
    struct object *object = of;

    assert_ptr_equal(argument, &disposed);
    in_order &= object->number == disposed;
    assert_ptr_equal(objects[object->number], object);
    objects[object->number] = NULL;
    disposed++;
    explicit_bzero(object, sizeof *object); /* nobody may look at it any more */
    free(object);
}

static void dispose_hash_node(struct prudence_hash_node *node, void *argument)
{
    dispose(prudence_hash_entry(node, struct object, hash_node), argument);
}

static void dispose_map_node(struct prudence_map_node *node, void *argument)
{
    dispose(prudence_map_entry(node, struct object, map_node), argument);
}

static void all_are_disposed_of(bool ordered)
{
    assert_int_equal(disposed, OBJECTS);
    assert_true(in_order || !ordered);
}

TEST(hash_disposes_of_objects)
{
    struct prudence_hash *table = prudence_hash_create("test", NULL);

    make_objects();
    for (unsigned i = 0; i < OBJECTS; i++) /* some share a hash, so a chain has many */
        assert_int_equal(prudence_hash_add_duplicate(table, i % 100, &objects[i]->hash_node), 0);
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), EBUSY);
    prudence_read_lock();
    assert_int_equal(prudence_hash_destroy(table, dispose_hash_node, &disposed), EDEADLK);
    prudence_read_unlock();
    assert_int_equal(disposed, 0);
    assert_int_equal(prudence_hash_count(table), OBJECTS);
    assert_int_equal(prudence_hash_destroy(table, dispose_hash_node, &disposed), 0);
    all_are_disposed_of(false);
}

TEST(lockfree_hash_disposes_of_objects)
{
    struct prudence_lockfree_hash *table = prudence_lockfree_hash_create("test", NULL);

    make_objects();
    prudence_read_lock();
    for (unsigned i = 0; i < OBJECTS; i++)
        assert_int_equal(
            prudence_lockfree_hash_add_duplicate(table, i % 100, &objects[i]->hash_node), 0);
    prudence_read_unlock();
    assert_int_equal(prudence_lockfree_hash_destroy(table, NULL, NULL), EBUSY);
    assert_int_equal(prudence_lockfree_hash_destroy(table, dispose_hash_node, &disposed), 0);
    all_are_disposed_of(false);
}

TEST(id_table_disposes_of_objects)
{
    struct prudence_id_table *table = prudence_id_table_create("test", NULL);
    uint32_t id;

    make_objects();
    for (unsigned i = 0; i < OBJECTS; i++)
        assert_int_equal(prudence_id_table_add(table, objects[i], &id), 0);
    assert_int_equal(prudence_id_table_destroy(table, NULL, NULL), EBUSY);
    prudence_read_lock();
    assert_int_equal(prudence_id_table_destroy(table, dispose, &disposed), EDEADLK);
    prudence_read_unlock();
    assert_int_equal(disposed, 0);
    assert_int_equal(prudence_id_table_destroy(table, dispose, &disposed), 0);
    all_are_disposed_of(true);
}

TEST(map_disposes_of_objects)
{
    struct prudence_map *map = prudence_map_create("test", NULL);

    make_objects();
    for (unsigned i = 0; i < OBJECTS; i++)
        assert_int_equal(prudence_map_add(map, &objects[i]->map_node, NULL), 0);
    assert_int_equal(prudence_map_destroy(map, NULL, NULL), EBUSY);
    assert_int_equal(prudence_map_destroy(map, dispose_map_node, &disposed), 0);
    all_are_disposed_of(true);
}

TEST(values_are_disposed_of)
{
    struct prudence_hash_values *hash = prudence_hash_values_create("test", NULL);
    struct prudence_map_values *map = prudence_map_values_create("test", NULL);

    make_objects();
    for (unsigned i = 0; i < OBJECTS; i++)
        assert_int_equal(prudence_hash_values_add(hash, i, objects[i], NULL), 0);
    assert_int_equal(prudence_hash_values_destroy(hash, NULL, NULL), EBUSY);
    assert_int_equal(prudence_hash_values_destroy(hash, dispose, &disposed), 0);
    all_are_disposed_of(false);
    make_objects();
    for (unsigned i = 0; i < OBJECTS; i++)
        assert_int_equal(prudence_map_values_add(map, i, objects[i], NULL), 0);
    assert_int_equal(prudence_map_values_destroy(map, NULL, NULL), EBUSY);
    assert_int_equal(prudence_map_values_destroy(map, dispose, &disposed), 0);
    all_are_disposed_of(true);
}

TEST(no_table_is_destroyed_or_counted)
{
    struct prudence_hash_stats hash;
    struct prudence_map_stats map;

    assert_int_equal(prudence_hash_destroy(NULL, NULL, NULL), EINVAL);
    assert_int_equal(prudence_hash_stats(NULL, &hash), EINVAL);
    assert_int_equal(prudence_lockfree_hash_destroy(NULL, NULL, NULL), EINVAL);
    assert_int_equal(
        prudence_lockfree_hash_stats(NULL, (struct prudence_lockfree_hash_stats *)NULL), EINVAL);
    assert_int_equal(prudence_id_table_destroy(NULL, NULL, NULL), EINVAL);
    assert_int_equal(prudence_map_destroy(NULL, NULL, NULL), EINVAL);
    assert_int_equal(prudence_map_stats(NULL, &map), EINVAL);
    assert_int_equal(prudence_routes_destroy(NULL), EINVAL);
    assert_int_equal(prudence_routes_stats(NULL, (struct prudence_routes_stats *)NULL), EINVAL);
}

/* -------------------------------------------------------------------------------------- updates */

static bool any(const struct prudence_hash_node *node, const void *key)
{
    return true;
}

/* The other tests store what an update found. Here nobody wants to know. */
TEST(nobody_needs_to_know_what_was_found)
{
    struct prudence_lockfree_hash *lockfree = prudence_lockfree_hash_create("test", NULL);
    struct prudence_hash *hash = prudence_hash_create("test", NULL);
    struct prudence_id_table *ids = prudence_id_table_create("test", NULL);
    struct prudence_map *map = prudence_map_create("test", NULL);
    struct prudence_hash_node nodes[4];
    struct prudence_map_node places[3] = {{.key = 1}, {.key = 1}, {.key = 1}};
    uint32_t id;

    assert_int_equal(prudence_hash_put(hash, 1, any, NULL, &nodes[0], NULL), 0);
    assert_int_equal(prudence_hash_add(hash, 1, any, NULL, &nodes[1], NULL), EEXIST);
    assert_int_equal(prudence_hash_put(hash, 1, any, NULL, &nodes[1], NULL), 0);
    assert_int_equal(prudence_hash_remove(hash, &nodes[1]), 0);
    assert_int_equal(prudence_hash_destroy(hash, NULL, NULL), 0);
    prudence_read_lock();
    assert_int_equal(prudence_lockfree_hash_put(lockfree, 1, any, NULL, &nodes[2], NULL), 0);
    assert_int_equal(prudence_lockfree_hash_add(lockfree, 1, any, NULL, &nodes[3], NULL), EEXIST);
    assert_int_equal(prudence_lockfree_hash_put(lockfree, 1, any, NULL, &nodes[3], NULL), 0);
    assert_int_equal(prudence_lockfree_hash_remove(lockfree, &nodes[3]), 0);
    prudence_read_unlock();
    assert_int_equal(prudence_lockfree_hash_destroy(lockfree, NULL, NULL), 0);
    assert_int_equal(prudence_id_table_replace(ids, 0, ids, NULL), ENOENT);
    assert_int_equal(prudence_id_table_erase(ids, 0, NULL), ENOENT);
    assert_int_equal(prudence_id_table_add(ids, ids, &id), 0);
    assert_int_equal(prudence_id_table_replace(ids, id, map, NULL), 0);
    assert_int_equal(prudence_id_table_erase(ids, id, NULL), 0);
    assert_int_equal(prudence_id_table_destroy(ids, NULL, NULL), 0);
    assert_int_equal(prudence_map_put(map, &places[0], NULL), 0);
    assert_int_equal(prudence_map_add(map, &places[1], NULL), EEXIST);
    assert_int_equal(prudence_map_put(map, &places[2], NULL), 0);
    assert_int_equal(prudence_map_erase(map, 1, NULL), 0);
    assert_int_equal(prudence_map_erase(map, 1, NULL), ENOENT);
    assert_int_equal(prudence_map_destroy(map, NULL, NULL), 0);
}

TEST(routes_tell_what_was_there)
{
    const struct prudence_routes_prefix prefix = {.address = {10}, .length = 8};
    struct prudence_routes *table = prudence_routes_create("test", NULL);
    struct prudence_routes_walk walk;
    uintptr_t value = 77;

    assert_int_equal(prudence_routes_erase(table, &prefix, &value), ENOENT);
    assert_int_equal(value, 0);
    assert_int_equal(prudence_routes_first(&walk, table, NULL), 0);
    value = 77;
    assert_int_equal(prudence_routes_add(table, &prefix, 1, &value), 0);
    assert_int_equal(value, 0);
    assert_int_equal(prudence_routes_add(table, &prefix, 2, &value), EEXIST);
    assert_int_equal(value, 1);
    assert_int_equal(prudence_routes_replace(table, &prefix, 3, &value), 0);
    assert_int_equal(value, 1);
    assert_int_equal(prudence_routes_first(&walk, table, NULL), 3);
    assert_int_equal(walk.prefix.length, 8);
    assert_int_equal(prudence_routes_next(&walk), 0);
    assert_int_equal(prudence_routes_erase(table, &prefix, &value), 0);
    assert_int_equal(value, 3);
    assert_int_equal(prudence_routes_replace(table, &prefix, 4, &value), ENOENT);
    assert_int_equal(value, 0);
    assert_int_equal(prudence_routes_destroy(table), 0);
}

TEST(nobody_needs_the_name_that_a_rename_replaces)
{
    struct prudence_hash *table = prudence_hash_create("test", NULL);
    struct prudence_hash_name names[3] = {0};

    assert_int_equal(prudence_hash_add_duplicate(table, 1, &names[0].node), 0);
    assert_int_equal(prudence_hash_add_duplicate(table, 2, &names[1].node), 0);
    prudence_read_lock();
    assert_int_equal(
        prudence_hash_rename_replace(table, &names[0], table, 2, any, NULL, &names[2], NULL), 0);
    assert_ptr_equal(prudence_hash_lookup_name(table, 2, any, NULL), &names[2]);
    assert_int_equal(prudence_hash_remove(table, &names[2].node), 0);
    prudence_read_unlock();
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
}

/* ----------------------------------------------------------------------------- small structures */

static unsigned writes;

static void write_out(void *log, const void *entries, size_t bytes)
{
    assert_int_equal(bytes, 8);
    assert_int_equal(prudence_log_destroy(log), EBUSY);
    writes++;
}

TEST(small_structures_say_why_they_stay)
{
    struct prudence_log *log = prudence_log_create(64, NULL);

    assert_int_equal(prudence_log_destroy(NULL), EINVAL);
    assert_int_equal(prudence_counter_destroy(NULL), EINVAL);
    assert_int_equal(prudence_counter_destroy(prudence_counter_create()), 0);
    assert_non_null(prudence_log_reserve(log, 8));
    assert_int_equal(prudence_log_flush(log, write_out, log), 0);
    assert_int_equal(writes, 1);
    assert_int_equal(prudence_log_destroy(log), 0);
}

SUITE()
