/* SPDX-License-Identifier: MIT */
/*
 * Fork waits until no thread is inside an update of a table, and lets none begin one (writers.h).
 * So the child finds each table as it was between two updates: chains, arrays, nodes, numbers and
 * the count of objects. A child loses whatever another thread alone had: an array, or a few nodes
 * of a map or of routes, that the thread was about to add or to defer. They are freed when the
 * child destroys the table (own_cache.c).
 */
#include "tables/fork.h"

#include "fork_part.h"
#include "tables/hash.h"
#include "tables/hash_fork.h"
#include "tables/id_table.h"
#include "tables/map_writers.h"
#include "tables/routes.h"
#include "tables/writers.h"

void tables_fork_prepare(void)
{
    struct list *item;

    os_lock_take_for_fork(&tables_lock);
    writers_stop_for_fork();
    list_for_each(item, &hash_tables)
    {
        hash_fork_wait_for_writers(list_entry(item, struct hash_table, link));
    }
    list_for_each(item, &id_tables)
    {
        os_lock_take_for_fork(&list_entry(item, struct id_table, link)->lock);
    }
    list_for_each(item, &ordered_maps)
    {
        map_writers_wait(list_entry(item, struct prudence_map, link));
    }
    list_for_each(item, &route_tables)
    {
        os_lock_take_for_fork(&list_entry(item, struct route_table, link)->lock);
    }
}

/* If the copy is not `whole`, another thread may have been forking too. This thread may then hold a
 * lock, so locks are not touched. */
void tables_fork_child(bool whole)
{
    struct list *item;

    if (!whole) {
        writers_go_on();
        return;
    }
    list_for_each(item, &hash_tables)
    {
        hash_fork_forget_writers(list_entry(item, struct hash_table, link));
        list_entry(item, struct hash_table, link)->views.owner.forked = true;
    }
    list_for_each(item, &id_tables)
    {
        list_entry(item, struct id_table, link)->views.owner.forked = true;
    }
    list_for_each(item, &ordered_maps)
    {
        map_writers_forget(list_entry(item, struct prudence_map, link));
        list_entry(item, struct prudence_map, link)->owner.forked = true;
    }
    list_for_each(item, &route_tables)
    {
        list_entry(item, struct route_table, link)->owner.forked = true;
    }
}

void tables_fork_done(void)
{
    struct list *item;

    list_for_each(item, &route_tables)
    {
        os_lock_release_from_fork(&list_entry(item, struct route_table, link)->lock);
    }
    list_for_each(item, &id_tables)
    {
        os_lock_release_from_fork(&list_entry(item, struct id_table, link)->lock);
    }
    writers_go_on();
    os_lock_release_from_fork(&tables_lock);
}

const struct fork_part tables_fork_part = {.order = FORK_TABLES,
                                           .name = "tables",
                                           .prepare = tables_fork_prepare,
                                           .child = tables_fork_child,
                                           .done = tables_fork_done};
ENTER(fork_parts, tables_fork_part);
