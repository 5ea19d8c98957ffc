/* SPDX-License-Identifier: MIT */
/* Fork handlers (the table is in fork.c; docs/reference/fork.md has the fate of each word). */
#ifndef PROCESS_FORK_H
#define PROCESS_FORK_H

#include "fork_part.h"

/* The parts that the program has, in order of their locks; NULL for others. Filled by
 * fork_start(). */
extern const struct fork_part *fork_parts[FORK_PARTS];

/* Registers the handlers. Called once, when all parts of the core are ready. */
void fork_start(void);

/* Bracket a call that takes libc's lock of the list of fork handlers and may allocate while holding
 * that lock: fork takes the lock after our handler as well. */
void fork_registration_begin(void);
void fork_registration_end(void);

/* Number of such calls that this thread is in; a handler that interrupts one may make another. */
extern HIDDEN __thread unsigned fork_registrations __attribute__((tls_model("initial-exec")));

#endif /* PROCESS_FORK_H */
