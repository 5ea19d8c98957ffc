/* SPDX-License-Identifier: MIT */
/* Fork handlers (the table is in fork.c; docs/reference/fork.md tells the fate of each word). */
#ifndef RUNTIME_FORK_H
#define RUNTIME_FORK_H

#include "base/base.h"

/* A part of the process's state. A function is NULL if the part has nothing to do. */
struct fork_part {
    const char *name;
    void (*prepare)(void); /* takes the part's locks, and waits until the part is whole */
    void (*child)(
        bool whole);      /* first in the child: forgets all state that belongs to other threads.
                           * If not whole, prepare was not called (fork.c) */
    void (*done)(void);   /* in parent and child, releases the locks of prepare */
    void (*resume)(void); /* last in the parent, with nothing held */
    void (*revive)(void); /* last in the child, with nothing held; may make threads */
};

extern const struct fork_part fork_parts[];
extern const unsigned fork_parts_count;

/* Registers the handlers. Called once, when all parts are ready. */
void fork_start(void);

/* Bracket a call that takes libc's lock of the list of fork handlers and may allocate while holding
 * that lock: fork takes the lock after our handler as well. */
void fork_registration_begin(void);
void fork_registration_end(void);

/* Number of such calls that this thread is in; a handler that interrupts one may make another. */
extern HIDDEN __thread unsigned fork_registrations __attribute__((tls_model("initial-exec")));

#endif /* RUNTIME_FORK_H */
