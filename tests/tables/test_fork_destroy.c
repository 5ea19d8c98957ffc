/* SPDX-License-Identifier: MIT */
/*
 * A child destroys tables although another thread of its parent had objects of theirs when the
 * process was copied: an entry or an array that it had just allocated. Nothing is reported, and the
 * child can then destroy the domain. Also where the caches share slabs (heap/cold.c).
 *
 * ctest: not-with thread (ThreadSanitizer knows the objects of the other thread)
 */
#include <prudence/hash_values.h>
#include <prudence/id_table.h>
#include <prudence/map_values.h>
#include <prudence/rcu.h>
#include <prudence/routes.h>

#include "heap/cold.h"
#include "tables/hash_values.h"
#include "tables/id_table.h"
#include "tables/map_update.h"
#include "tables/routes.h"
#include "support/gp_child.h"
#include "support/suite.h"

static struct prudence_domain *domain; /* NULL: the default domain */
static struct prudence_hash_values *hash;
static struct prudence_map_values *map, *names;
static struct prudence_id_table *ids;
static struct prudence_routes *routes;
static int value;

static void no_value(void *of_key, void *unused)
{
    (void)of_key, (void)unused;
}

static void make_tables(void)
{
    const struct prudence_hash_values_attr of_hash = {.size = sizeof of_hash, .domain = domain};
    const struct prudence_map_values_attr of_map = {.size = sizeof of_map, .domain = domain};
    const struct prudence_map_values_attr of_names = {
        .size = sizeof of_names, .domain = domain, .flags = PRUDENCE_MAP_VALUES_BYTES};
    const struct prudence_id_table_attr of_ids = {.size = sizeof of_ids, .domain = domain};
    const struct prudence_routes_attr of_routes = {.size = sizeof of_routes, .domain = domain};
    static char name[2000];
    uint32_t id;

    hash = prudence_hash_values_create("hash", &of_hash);
    map = prudence_map_values_create("map", &of_map);
    names = prudence_map_values_create("names", &of_names);
    ids = prudence_id_table_create("ids", &of_ids);
    routes = prudence_routes_create("routes", &of_routes);
    for (uint64_t key = 0; key < 100; key++) {
        prudence_hash_values_put(hash, key, &value, NULL);
        prudence_map_values_put(map, key, &value, NULL);
        prudence_id_table_add(ids, &value, &id);
    }
    prudence_map_values_put_bytes(names, name, sizeof name, &value, NULL);
}

/* Takes what threads take before they enter an update: entries, nodes, arrays. */
static void take_objects(void)
{
    struct map_update update = {.map = (struct prudence_map *)map};
    bool zeroed;

    if (!entries_alloc(&hash->entries, 0) || !entries_alloc(&update.map->entries, 0) ||
        !entries_alloc(&((struct prudence_map *)names)->entries, 2000) ||
        !views_new(&hash->table->views, VIEW_ORDER_PAGE, &zeroed) ||
        !views_new(&((struct id_table *)ids)->views, VIEW_ORDER_SMALL, &zeroed) ||
        !route_node_make(route_table_of(routes), 1))
        abort();
    map_update_provide(&update, MAP_FOUR);
}

static int destroys_all(void *unused)
{
    (void)unused;
    if (prudence_hash_values_destroy(hash, no_value, NULL) ||
        prudence_map_values_destroy(map, no_value, NULL) ||
        prudence_map_values_destroy(names, no_value, NULL) ||
        prudence_id_table_destroy(ids, no_value, NULL) || prudence_routes_destroy(routes))
        return 1;
    return domain && prudence_domain_destroy(domain) ? 2 : 42;
}

static void child_destroys_all(void)
{
    struct child_result result;

    make_tables();
    take_objects();
    child_run(destroys_all, NULL, &result);
    if (!child_exited_with(&result, 42) || *result.output)
        fail_msg("status %#x: %s", (unsigned)result.status, result.output);
}

TEST(in_the_default_domain)
{
    domain = NULL;
    child_destroys_all();
}

TEST(in_another_domain)
{
    const struct prudence_domain_attr attr = {.size = sizeof attr};

    domain = prudence_domain_create("own", PRUDENCE_DOMAIN_MEMB, &attr);
    assert_non_null(domain);
    child_destroys_all();
}

TEST(with_shared_slabs)
{
    domain = NULL;
    cold_after = 0;
    child_destroys_all();
    cold_after = 256;
}

SUITE()
