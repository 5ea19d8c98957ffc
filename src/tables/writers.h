/* SPDX-License-Identifier: MIT */
/*
 * Lists all tables, and keeps their writers out while fork copies the process, so that a child
 * finds every table whole and may update it.
 *
 * Writers that lock parts of a table by bits (buckets) take the lock and then check whether a fork
 * has stopped all writers. Fork sets `writers_stopped`, then reads every lock of every table,
 * and waits until each is free. The writer's compare-and-swap and check are seq-cst, and a full
 * fence follows fork's store, so at least one side sees the other. A writer that sees the fork has
 * changed nothing yet; the writer unlocks and waits. A child that was copied in between has the
 * lock but not the thread that holds it, so the child clears all such locks (tables/fork.c). A fork
 * handler of the program that runs in the child before that takes them over (writers_are_gone).
 *
 * Writers that lock nodes of an ordered map, which has too many nodes to read, are counted in
 * the map before they lock the first. The same argument holds with the count in place of the lock:
 * fork checks the counts, and a child clears them (map_writers.h).
 *
 * A writer checks only when it holds nothing. One that holds a lock takes further locks without a
 * check. Fork, which waits for the first lock, finds the others later in its order, or they are
 * released before the first.
 */
#ifndef TABLES_WRITERS_H
#define TABLES_WRITERS_H

#include "base/list.h"
#include "os/os.h"

/* Written by fork, loaded by updates. */
extern HIDDEN uint32_t writers_stopped;

/* Called after a seq-cst update that took a lock. Handlers of pthread_atfork run on the thread that
 * forks, which must not wait for itself. */
static inline bool writers_must_wait(void)
{
    return unlikely(__atomic_load_n(&writers_stopped, __ATOMIC_SEQ_CST)) && !os_lock_forking;
}

/*
 * Returns whether this thread is the only one of a child whose locks are not cleared yet. Then a
 * lock that it finds taken is nobody's, and what the lock protects is whole. In the parent such a
 * lock is another writer's, which gives it up by a store that would undo this thread's, so a fork
 * handler waits there.
 */
static inline bool writers_are_gone(void)
{
    return unlikely(os_lock_forking) && os_copy_is_unnoticed();
}

/* Waits until the fork is over. The caller holds nothing but the mark that it is inside the library
 * (os_busy), and gives that up during the wait. */
void writers_wait(void);

void writers_stop_for_fork(void);
void writers_go_on(void);

/* Each list holds all tables of one kind and is protected by tables_lock. A table is added when it
 * is complete, and removed before it is taken apart. */
extern HIDDEN struct os_lock tables_lock;
extern HIDDEN struct list hash_tables, id_tables, ordered_maps, route_tables;

void tables_add(struct list *list, struct list *table);
void tables_remove(struct list *table);

/* Gives memory back to the system when a program has destroyed most of many tables. Called with
 * nothing held, when a table's memory is freed. */
void tables_trim(void);

#endif /* TABLES_WRITERS_H */
