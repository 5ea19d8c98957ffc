/* SPDX-License-Identifier: MIT */
/*
 * A child destroys a table of each kind (kinds.h) although another thread of its parent had objects
 * of that table when the process was copied: an entry, a node or an array that it had just
 * allocated. Nothing is reported, and the child can then destroy the domain. Also where the caches
 * share slabs (heap/cold.c).
 *
 * ctest: not-with thread (ThreadSanitizer knows the objects of the other thread)
 */
#include "tables/kinds.h"

#include "heap/cold.h"
#include "support/gp_child.h"
#include "tables/hash.h"
#include "tables/hash_values.h"
#include "tables/id_table.h"
#include "tables/map_update.h"
#include "tables/routes.h"

static void *table;
static struct prudence_domain *domain; /* NULL: the default domain */
static struct entry entries[100];

/* Takes what threads take before they enter an update. */
static bool take_objects(void)
{
    struct prudence_hash_values *const values = table;
    struct map_update update = {.map = table};
    bool zeroed;

    switch (tested - table_kinds) {
    case TABLE_HASH:
        return views_new(&hash_of(table)->views, VIEW_ORDER_PAGE, &zeroed);
    case TABLE_HASH_VALUES:
    case TABLE_HASH_VALUES_BYTES:
        return entries_alloc(&values->entries, 2000) &&
               views_new(&values->table->views, VIEW_ORDER_PAGE, &zeroed);
    case TABLE_IDS:
        return views_new(&((struct id_table *)table)->views, VIEW_ORDER_SMALL, &zeroed);
    case TABLE_ROUTES_IPV4:
    case TABLE_ROUTES_IPV6:
    case TABLE_ROUTES_AREAS:
        return route_node_make(route_table_of(table), 1);
    default:
        map_update_provide(&update, MAP_FOUR);
        return tested->flags & TABLE_OBJECTS || entries_alloc(&update.map->entries, 2000);
    }
}

static void ignore(struct entry *entry, void *unused)
{
}

static int destroys_all(void *unused)
{
    if (tested->destroy(table, ignore, NULL))
        return 1;
    return domain && prudence_domain_destroy(domain) ? 2 : 42;
}

static void a_child_destroys_it(void)
{
    struct child_result result;

    table = table_make(tested, domain);
    for (unsigned key = 0; key < 100; key++)
        assert_int_equal(tested->add(table, key, &entries[key], NULL), 0);
    assert_true(take_objects());
    child_run(destroys_all, NULL, &result);
    if (!child_exited_with(&result, 42) || *result.output)
        fail_msg("status %#x: %s", (unsigned)result.status, result.output);
}

static void in_the_default_domain(void)
{
    domain = NULL;
    a_child_destroys_it();
}

static void in_another_domain(void)
{
    domain = prudence_domain_create("own", PRUDENCE_DOMAIN_MEMB, NULL);
    assert_non_null(domain);
    a_child_destroys_it();
}

static void with_shared_slabs(void)
{
    domain = NULL;
    cold_after = 0;
    a_child_destroys_it();
    cold_after = 256;
}

static const struct table_case cases[] = {
    {"in the default domain", in_the_default_domain, TABLE_DOMAIN, 0},
    {"in another domain", in_another_domain, TABLE_DOMAIN, 0},
    {"with shared slabs", with_shared_slabs, TABLE_DOMAIN, 0},
};

int main(void)
{
    return table_cases_run(cases, sizeof cases / sizeof cases[0]);
}
