/* SPDX-License-Identifier: MIT */
/* The lists of tables, and the word that stops their writers (writers.h). */
#include "structures/writers.h"

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

void tables_add(struct list *list, struct list *table)
{
    os_lock_take(&tables_lock);
    list_append(list, table);
    os_lock_release(&tables_lock);
}

void tables_remove(struct list *table)
{
    os_lock_take(&tables_lock);
    list_remove(table);
    os_lock_release(&tables_lock);
}
