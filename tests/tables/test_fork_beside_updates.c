/* SPDX-License-Identifier: MIT */
/*
 * Forks while another thread is anywhere in an update of a table, or about to begin one
 * (support/fork_at_step.h). The child finds a whole table: it checks every invariant, finds each
 * object that no update concerned, updates everything, forks, and destroys the table.
 *
 * rseq=0, because restartable sequences cannot be stepped through.
 *
 * ctest: cost 15
 * ctest: needs steps
 */
#define _GNU_SOURCE
#include <limits.h>

#include <prudence/hash_values.h>
#include <prudence/id_table.h>
#include <prudence/map.h>

#include "tables/hash_resize.h"
#include "support/name_test.h"
#include "support/updates.h"
#include "support/routes_test.h"
#include "support/fork_at_step.h"

#define ITEMS      500
#define STEPS_MOST 6000

static struct prudence_hash *table;
static struct prudence_id_table *ids;
static struct item items[ITEMS], extra[2];
static char named[ITEMS];

/* ----------------------------------------------------------------------------------- hash table */

static void make_hash(void)
{
    table = table_of_domain(NULL, 64, 0, PRUDENCE_HASH_FIXED);
    for (unsigned i = 0; i < ITEMS; i++) {
        items[i].key = i;
        prudence_hash_add_duplicate(table, hash_mixed(i), &items[i].node);
    }
}

/* Begins a resize that has not moved any group yet. */
static void make_hash_that_grows(void)
{
    make_hash();
    assert_true(hash_resize_begin(hash_of(table), table->view, 9));
    while (!hash_of(table)->from)
        hash_resize_step(hash_of(table));
}

static void make_hash_that_shrinks(void)
{
    make_hash();
    assert_int_equal(prudence_hash_resize(table, 512), 0);
    assert_true(hash_resize_begin(hash_of(table), table->view, 6));
    while (!hash_of(table)->from)
        hash_resize_step(hash_of(table));
}

/* Updates the objects 0 and 1, and adds a key that is absent. */
static void update_hash(void)
{
    extra[0].key = ITEMS;
    prudence_hash_add_duplicate(table, hash_mixed(ITEMS), &extra[0].node);
    extra[1].key = 0;
    prudence_hash_replace(table, &items[0].node, &extra[1].node);
    prudence_hash_remove(table, &items[1].node);
}

static void resize_hash(void)
{
    prudence_hash_resize(table, 512);
}

static void empty_hash(void)
{
    prudence_hash_resize(table, 64);
    remove_all(table);
    check_chains(table);
}

static void destroy_hash(void)
{
    empty_hash();
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
}

static void use_hash(void)
{
    check_chains(table);
    for (unsigned i = 2; i < ITEMS; i++) {
        assert_ptr_equal(look_up(table, hash_mixed(i), i), &items[i]);
        assert_int_equal(prudence_hash_remove(table, &items[i].node), 0);
    }
    assert_true(prudence_hash_count(table) <= 3);
    assert_non_null(look_up(table, hash_mixed(0), 0));
    for (unsigned i = 2; i < ITEMS; i++)
        prudence_hash_add_duplicate(table, hash_mixed(i), &items[i].node);
    assert_int_equal(prudence_hash_resize(table, 2048), 0);
    check_chains(table);
}

/* ------------------------------------------------------------------------- hash table of values */

static struct prudence_hash_values *of_values;

static void make_values(void)
{
    of_values = prudence_hash_values_create("test", NULL);
    for (unsigned i = 0; i < 60; i++)
        assert_int_equal(prudence_hash_values_put(of_values, i, &named[i], NULL), 0);
}

/* Updates the keys 0 and 1, and adds an absent one. */
static void update_values(void)
{
    prudence_hash_values_put(of_values, 0, &named[100], NULL);
    prudence_hash_values_erase(of_values, 1, NULL);
    prudence_hash_values_put(of_values, 60, &named[60], NULL);
}

static void use_values(void)
{
    const void *first = prudence_hash_values_get(of_values, 0);
    uint64_t count = 1;

    assert_true(first == &named[0] || first == &named[100]);
    for (unsigned i = 1; i < 100; i++)
        count += prudence_hash_values_get(of_values, i) == &named[i];
    assert_int_equal(prudence_hash_values_count(of_values), count);
    for (unsigned i = 2; i < 60; i++)
        assert_ptr_equal(hash_values_erase_found(of_values, i), &named[i]);
    for (unsigned i = 0; i < ITEMS; i++)
        assert_int_equal(prudence_hash_values_put(of_values, i, &named[i], NULL), 0);
    assert_int_equal(prudence_hash_values_count(of_values), ITEMS);
}

static void ignore(void *value, void *argument)
{
    (void)value, (void)argument;
}

static void destroy_values(void)
{
    assert_int_equal(prudence_hash_values_destroy(of_values, ignore, NULL), 0);
}

/* -------------------------------------------------------------------------------------- renames */

static struct prudence_hash *other_table;
static struct entry a, b, fresh[4];

static int rename_to(struct entry *old, struct prudence_hash *from, struct prudence_hash *to,
                     uint64_t key, struct entry *name)
{
    entry_set(name, key, old->object);
    return prudence_hash_rename(from, &old->name, to, hash_mixed(key), entry_has_key, &key,
                                &name->name);
}

static void make_names(void)
{
    table = table_of_domain(NULL, 64, 0, 0);
    other_table = table_of_domain(NULL, 64, 0, 0);
    prudence_hash_add_duplicate(table, hash_mixed(1), &entry_set(&a, 1, 10)->name.node);
    prudence_hash_add_duplicate(other_table, hash_mixed(2), &entry_set(&b, 2, 20)->name.node);
}

/* Renames to the other table, and within it. */
static void rename_both(void)
{
    rename_to(&a, table, other_table, 3, &fresh[0]);
    rename_to(&b, other_table, other_table, 4, &fresh[1]);
}

/* Checks that each object has one name, counted in that name's table. */
static void use_names(void)
{
    struct entry *of_a = find(table, hash_mixed(1), 1),
                 *then_a = find(other_table, hash_mixed(3), 3);
    struct entry *of_b = find(other_table, hash_mixed(2), 2);
    struct entry *then_b = find(other_table, hash_mixed(4), 4);

    assert_true(!of_a != !then_a && !of_b != !then_b);
    assert_int_equal(prudence_hash_count(table), of_a ? 1 : 0);
    assert_int_equal(prudence_hash_count(other_table), of_a ? 1 : 2);
    check_chains(table);
    check_chains(other_table);
    assert_int_equal(
        rename_to(of_a ? of_a : then_a, of_a ? table : other_table, table, 5, &fresh[2]), 0);
    assert_int_equal(rename_to(of_b ? of_b : then_b, other_table, table, 6, &fresh[3]), 0);
}

static void destroy_names(void)
{
    remove_all(table);
    remove_all(other_table);
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
    assert_int_equal(prudence_hash_destroy(other_table, NULL, NULL), 0);
}

/* --------------------------------------------------------------------------------- table of ids */

static void make_ids(void)
{
    uint32_t id;

    ids = prudence_id_table_create("test", NULL);
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(prudence_id_table_add(ids, &named[i], &id), 0);
}

static void update_ids(void)
{
    uint32_t id;

    prudence_id_table_replace(ids, 0, &named[ITEMS - 1], NULL);
    prudence_id_table_erase(ids, 1, NULL);
    prudence_id_table_add(ids, &named[1], &id);
    prudence_id_table_add(ids, &named[64], &id); /* the array grows */
}

static void use_ids(void)
{
    uint32_t id;

    for (uint32_t i = 2; i < 64; i++)
        assert_ptr_equal(ids_erase_found(ids, i), &named[i]);
    assert_true(prudence_id_table_count(ids) <= 3);
    for (uint32_t i = 2; i < ITEMS; i++)
        assert_int_equal(prudence_id_table_add(ids, &named[i], &id), 0);
}

static void destroy_ids(void)
{
    struct prudence_id_table_walk walk;
    void *object;

    prudence_id_table_for_each(&walk, ids, object)
        assert_ptr_equal(ids_erase_found(ids, walk.id), object);
    assert_int_equal(prudence_id_table_count(ids), 0);
    assert_int_equal(prudence_id_table_destroy(ids, NULL, NULL), 0);
}

/* ---------------------------------------------------------------------------------- ordered map */

#define FAR (UINT64_C(1) << 40) /* cuts the prefix that all others share */

static struct prudence_map *map;
static struct prudence_map_node mapped[ITEMS], changed[3];

static void make_map(void)
{
    map = prudence_map_create("test", NULL);
    for (unsigned i = 0; i < ITEMS; i++) {
        mapped[i].key = i;
        assert_int_equal(prudence_map_add(map, &mapped[i], NULL), 0);
    }
}

/* Updates the keys 0 and 1, and adds two that are absent. Nodes are replaced twice: a prefix is
 * cut, and two nodes are joined. */
static void update_map(void)
{
    struct prudence_map_node *replaced;

    changed[0].key = ITEMS;
    prudence_map_add(map, &changed[0], NULL);
    changed[1].key = 0;
    prudence_map_put(map, &changed[1], &replaced);
    changed[2].key = FAR;
    prudence_map_add(map, &changed[2], NULL);
    prudence_map_erase(map, FAR, NULL);
    prudence_map_erase(map, 1, NULL);
}

static uint64_t count_mapped(void)
{
    struct prudence_map_walk walk;
    struct prudence_map_node *node;
    uint64_t seen = 0;

    prudence_map_for_each(&walk, map, node) seen++;
    return seen;
}

static void use_map(void)
{
    assert_int_equal(prudence_map_count(map), count_mapped());
    for (unsigned i = 2; i < ITEMS; i++) {
        assert_ptr_equal(prudence_map_lookup(map, i), &mapped[i]);
        assert_ptr_equal(map_erase_found(map, i), &mapped[i]);
    }
    assert_int_equal(prudence_map_count(map), count_mapped());
    assert_non_null(prudence_map_lookup(map, 0));
    for (unsigned i = 2; i < ITEMS; i++)
        assert_int_equal(prudence_map_add(map, &mapped[i], NULL), 0);
}

static void destroy_map(void)
{
    for (unsigned i = 0; i <= ITEMS; i++)
        prudence_map_erase(map, i, NULL);
    prudence_map_erase(map, FAR, NULL);
    assert_int_equal(prudence_map_count(map), 0);
    assert_int_equal(prudence_map_destroy(map, NULL, NULL), 0);
}

/* --------------------------------------------------------------------------------------- routes */

#define ROUTES 253 /* with three more, the index and the shortcuts grow */

static struct prudence_routes *routes;

static struct prudence_routes_prefix route_number(unsigned i)
{
    return (struct prudence_routes_prefix){.address = {0x24, 0, (unsigned char)i}, .length = 48};
}

static int add_route(const char *text, uintptr_t value)
{
    const struct prudence_routes_prefix prefix = prefix_of(text);

    return prudence_routes_add(routes, &prefix, value, NULL);
}

static void make_routes(void)
{
    routes = routes_of(PRUDENCE_ROUTES_IPV6, 0, NULL);
    for (unsigned i = 0; i < ROUTES; i++) {
        const struct prudence_routes_prefix prefix = route_number(i);

        assert_int_equal(prudence_routes_add(routes, &prefix, 100 + i, NULL), 0);
    }
    assert_int_equal(add_route("2001:db8::/32", 1), 0);
    assert_int_equal(add_route("2001:db8:1::/48", 2), 0);
}

/* The first update informs 64 nodes, one after the other. Then a node is copied, an edge cut,
 * and two are joined. */
static void update_routes(void)
{
    const struct prudence_routes_prefix first = prefix_of("2001:db8::/32"),
                                        second = prefix_of("2001:db8:1::/48");

    add_route("2400::/18", 9);
    add_route("2001:db8:1:2::/64", 3);
    add_route("2001:db8:8000::/48", 4);
    prudence_routes_erase(routes, &first, NULL);
    prudence_routes_replace(routes, &second, 5, NULL);
}

static void use_routes(void)
{
    const struct address address = address_of("2001:db8:1::1");
    const uintptr_t value = route_to(routes, &address);

    check_trie(routes);
    assert_true(value == 2 || value == 5);
    for (unsigned i = 0; i < ROUTES; i++) {
        const struct prudence_routes_prefix prefix = route_number(i);
        uintptr_t old;

        assert_int_equal(prudence_routes_erase(routes, &prefix, &old), 0);
        assert_int_equal(old, 100 + i);
    }
    for (unsigned i = 0; i < 2 * ROUTES; i++) {
        const struct prudence_routes_prefix prefix = {
            .address = {0x26, (unsigned char)(i >> 8), (unsigned char)i}, .length = 40};

        assert_int_equal(prudence_routes_add(routes, &prefix, 100 + i, NULL), 0);
    }
    check_trie(routes);
}

static void destroy_routes(void)
{
    check_trie(routes);
    assert_int_equal(prudence_routes_destroy(routes), 0);
}

/* ---------------------------------------------------------------------------------------- forks */

static void destroy(const struct fork_path *path)
{
    path->tear_down();
}

enum { UPDATES, RENAMES, OF_MAP };

static const struct fork_path rows[] = {
    [UPDATES] = {"updates", make_hash, NULL, update_hash, NULL, use_hash, destroy_hash, 3},
    [RENAMES] = {"renames", make_names, NULL, rename_both, NULL, use_names, destroy_names, 40},
    [OF_MAP] = {"updates of a map", make_map, NULL, update_map, NULL, use_map, destroy_map, 8},
    {"updates of a table that grows", make_hash_that_grows, NULL, update_hash, NULL, use_hash,
     destroy_hash, 3},
    {"updates of one that shrinks", make_hash_that_shrinks, NULL, update_hash, NULL, use_hash,
     destroy_hash, 3},
    {"a resize", make_hash, NULL, resize_hash, NULL, use_hash, destroy_hash, 3},
    {"updates of values", make_values, NULL, update_values, NULL, use_values, destroy_values, 3},
    {"updates of ids", make_ids, NULL, update_ids, NULL, use_ids, destroy_ids, 3},
    {"updates of routes", make_routes, NULL, update_routes, NULL, use_routes, destroy_routes, 2},
};
#define ROWS (sizeof rows / sizeof rows[0])

/* Fork waits for the other thread's lock, so that thread finishes its update first. */
TEST(a_child_finds_whole_tables)
{
    for (unsigned i = 0; i < ROWS; i++) {
        unsigned all = fork_path(&rows[i], STEPS_MOST, 0);

        for (unsigned place = 0; place < rows[i].places; place++)
            fork_path(&rows[i], all * place / rows[i].places, 0);
    }
}

/* The writer locks a bucket, takes the right to a step, or is counted; it sees the fork, and
 * undoes that. The child is copied in between. */
TEST(a_writer_that_was_about_to_begin)
{
    for (unsigned inside = 1; inside <= 85; inside += 7) {
        fork_path(&rows[UPDATES], 0, inside);
        fork_path(&rows[RENAMES], 0, 4 * inside);
    }
    /* The map counts the writer for six instructions, some two hundred from its beginning. */
    for (unsigned inside = 150; inside <= 230; inside += 6)
        fork_path(&rows[OF_MAP], 0, inside);
}

/* Fork handlers of the program, run in the middle of the fork by the forking thread. */
static bool handlers_update;

static void update_in_handler(void)
{
    struct item *item = &extra[0];

    if (!handlers_update)
        return;
    item->key = ITEMS;
    prudence_hash_add_duplicate(table, hash_mixed(ITEMS), &item->node);
    assert_int_equal(prudence_hash_remove(table, &item->node), 0);
    assert_int_equal(prudence_hash_resize(table, 512), 0);
    assert_ptr_equal(ids_erase_found(ids, 5), &named[5]);
    assert_ptr_equal(map_erase_found(map, 5), &mapped[5]);
    assert_int_equal(prudence_map_add(map, &mapped[5], NULL), 0);
    assert_int_equal(add_route("::/0", 6), 0);
}

TEST(handlers_may_update)
{
    int status;
    pid_t child;
    uint32_t id;

    make_hash();
    make_ids();
    make_map();
    make_routes();
    handlers_update = true;
    child = fork();
    if (!child)
        _exit(0);
    handlers_update = false;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    check_chains(table);
    assert_int_equal(prudence_id_table_add(ids, &named[5], &id), 0);
    assert_int_equal(id, 5);
    assert_int_equal(prudence_map_count(map), count_mapped());
    assert_int_equal(prudence_routes_count(routes), ROUTES + 3);
    destroy_hash();
    destroy_ids();
    destroy_map();
    destroy_routes();
}

static void start(void)
{
    /* registered before the library's, so it runs after that */
    pthread_atfork(update_in_handler, NULL, NULL);
    fork_at_step_start();
}

BEFORE_CONSTRUCTORS(start);

int main(void)
{
    if (prudence_option_set("rseq", "0"))
        return 1;
    fork_path_uses = destroy;
    pin_thread();
    return suite_run(NULL, NULL);
}
