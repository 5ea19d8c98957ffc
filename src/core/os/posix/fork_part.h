/* SPDX-License-Identifier: MIT */
/*
 * Parts of the process's state that fork visits (process/fork.c). Each stands next to its locks.
 * docs/reference/fork.md has a row for each.
 */
#ifndef OS_POSIX_FORK_PART_H
#define OS_POSIX_FORK_PART_H

#include "entered.h"

/* The order of the parts, which is that of their locks. */
enum fork_order {
    FORK_URCU_TABLES,
    FORK_HANDLERS,
    FORK_OPTIONS,
    FORK_TABLES,
    FORK_STREAMS,
    FORK_SYSTEM,
    FORK_URCU_WORKERS,
    FORK_SCM,
    FORK_HEAP,
    FORK_READERS,
    FORK_EXTERNAL,
    FORK_CALLBACKS,
    FORK_HEADS,
    FORK_CACHES,
    FORK_DESTRUCTORS,
    FORK_QUARANTINE,
    FORK_GUARD,
    FORK_LARGE_GUARD,
    FORK_PAGE_JOBS,
    FORK_ANNOTATIONS,
    FORK_NESTED,
    FORK_PAGES,
    FORK_FORKER,
    FORK_PARTS
};

/* A function is NULL if the part has nothing to do. */
struct fork_part {
    enum fork_order order;
    const char *name;
    void (*prepare)(void); /* takes the part's locks, and waits until the part is whole */
    void (*child)(
        bool whole);      /* first in the child: forgets all state that belongs to other threads.
                           * If not whole, prepare was not called (fork.c) */
    void (*done)(void);   /* in parent and child, releases the locks of prepare */
    void (*resume)(void); /* last in the parent, with nothing held */
    void (*revive)(void); /* last in the child, with nothing held; may make threads */
};

/* Those of other parts than the core that each program with these parts has; the last is NULL. The
 * embedding program's table names them. Members that a program may lack enter theirs in the set. */
extern const struct fork_part *const other_fork_parts[];
ENTERED_SET(struct fork_part, fork_parts);

#endif /* OS_POSIX_FORK_PART_H */
