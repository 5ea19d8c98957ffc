/* SPDX-License-Identifier: MIT */
/* The lists of tables, and the word that stops their writers (writers.h). */
#include "tables/writers.h"

#include <prudence/prudence.h>

uint32_t writers_stopped READ_MOSTLY = 0;

struct os_lock tables_lock = OS_LOCK_INIT(OS_RANK_STRUCTURES);
struct list hash_tables = {&hash_tables, &hash_tables};
struct list id_tables = {&id_tables, &id_tables};
struct list ordered_maps = {&ordered_maps, &ordered_maps};
struct list route_tables = {&route_tables, &route_tables};

void writers_wait(void)
{
    os_busy_leave();
    while (load_acquire(&writers_stopped) && !os_lock_forking)
        os_sleep_ns(10000);
    os_busy_enter();
}

void writers_stop_for_fork(void)
{
    __atomic_store_n(&writers_stopped, 1u, __ATOMIC_SEQ_CST);
    os_full_fence();
}

void writers_go_on(void)
{
    store_release(&writers_stopped, 0u);
}

/*
 * A process at rest runs nothing that would give the memory of destroyed tables back later. So the
 * thread that destroys the table by which the tables have become half as many, and TRIM_TABLES
 * fewer, gives it back. That many tables take more than a megabyte, so the pages are worth it.
 */
#define TRIM_TABLES 1024

static uint64_t tables_now, tables_most; /* since the last trim; protected by tables_lock */

void tables_trim(void)
{
    bool due;

    os_lock_take(&tables_lock);
    due = tables_now <= tables_most / 2 && tables_most - tables_now >= TRIM_TABLES;
    if (due)
        tables_most = tables_now;
    os_lock_release(&tables_lock);
    if (due)
        prudence_trim();
}

void tables_add(struct list *list, struct list *table)
{
    os_lock_take(&tables_lock);
    tables_now++;
    tables_most = max_size(tables_most, tables_now);
    list_append(list, table);
    os_lock_release(&tables_lock);
}

void tables_remove(struct list *table)
{
    os_lock_take(&tables_lock);
    tables_now--;
    list_remove(table);
    os_lock_release(&tables_lock);
}
