/* SPDX-License-Identifier: MIT */
/* Fork, of which fork.c has the table (docs/reference/fork.md says what becomes of each word). */
#ifndef RUNTIME_FORK_H
#define RUNTIME_FORK_H

#include "base/base.h"

/* One part of the process's state. Functions are NULL where there is nothing to do. */
struct fork_part {
    const char *name;
    void (*prepare)(void); /* takes what guards it, and waits until it is whole */
    void (*child)(
        bool whole);    /* first thing in the child: what is not the forking thread's is forgotten.
                                  Not whole: prepare was not called (fork_is_whole) */
    void (*done)(void); /* in parent and child: releases what prepare took */
    void (*resume)(void); /* last, in the parent, and ... */
    void (*revive)(void); /* ... in the child: with nothing held; may make threads */
};

extern const struct fork_part fork_parts[];
extern const unsigned fork_parts_count;

/* Registers the handlers. Once, when all parts are ready. */
void fork_start(void);

/* Around a call that takes libc's lock of its list of fork handlers, and may allocate with it: fork takes
 * that lock after our handler as well. */
void fork_registration_begin(void);
void fork_registration_end(void);

/* This thread is in such a call: how often, because a handler that interrupts it may make one, too. */
extern HIDDEN __thread unsigned fork_registrations __attribute__((tls_model("initial-exec")));

#endif /* RUNTIME_FORK_H */
