/* SPDX-License-Identifier: MIT */
/*
 * Fork and the tables: which tables there are, and how their writers are kept out while the process is copied. So a
 * child finds every table whole, and may update it.
 *
 * Writers that lock parts of a table by bits (buckets) take the lock, then ask whether a fork has stopped all. Fork says so, then
 * looks at every lock of every table, and waits until it is free. The writer's compare-and-swap and its question are
 * seq-cst, and fork's word is followed by a full fence, so one of the two sees the other. A writer that sees the fork unlocks what it
 * has just locked, having changed nothing, and waits. A child that was copied in between has that lock, and not its
 * thread: it clears all of them (structures/fork.c).
 *
 * Writers that lock nodes of an ordered map, too many to look at, are counted in the map before they lock the first. With that count in
 * the place of the lock the same holds: fork looks at the counts, and a child takes away what it finds there (map_writers.h).
 *
 * A writer asks only where it holds nothing. One that holds a lock takes further ones without asking, and fork, which waits for the
 * first, finds them later in its order, or they are released before it.
 */
#ifndef STRUCTURES_WRITERS_H
#define STRUCTURES_WRITERS_H

#include "base/list.h"
#include "os/os.h"

/* Only fork writes it; updates load it. */
extern HIDDEN uint32_t writers_stopped;

/* Behind a seq-cst update that took a lock. Handlers of others run on the thread that forks, while it keeps everybody else out. */
static inline bool writers_must_wait(void)
{
    return unlikely(__atomic_load_n(&writers_stopped, __ATOMIC_SEQ_CST)) && !os_lock_forking;
}

/* With nothing held but the mark that the thread is in the library (os_busy), which it leaves meanwhile. */
void writers_wait(void);

void writers_stop_for_fork(void);
void writers_go_on(void);

/* All tables of one kind, in `list`, under tables_lock. A table is added when it is complete, and removed before it is
 * taken apart. */
extern HIDDEN struct os_lock tables_lock;
extern HIDDEN struct list hash_tables, id_tables, ordered_maps, route_tables;

void tables_add(struct list *list, struct list *table);
void tables_remove(struct list *table);

#endif /* STRUCTURES_WRITERS_H */
