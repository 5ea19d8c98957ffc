/* SPDX-License-Identifier: MIT */
/* The option sandbox: which system calls the library may make (os/posix/syscall_policy.h). */
#ifndef PROCESS_SANDBOX_H
#define PROCESS_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

/* The option's choices, in the order of the table of options. */
enum sandbox { SANDBOX_AUTO, SANDBOX_NEVER, SANDBOX_ALWAYS };

/* Sets the option: from the environment before the library has started, or at run time under the
 * lock of the options. */
void sandbox_set(uint64_t choice);

/* Returns whether the option has been 1, so that `choice` is no longer possible. */
bool sandbox_keeps_from(uint64_t choice);

/* Returns at start whether the process is to do without restartable sequences and membarrier for
 * good. */
bool sandbox_is_wanted(void);

/* Ends the start of the process; from here on calls are few if so chosen. */
void sandbox_start(void);

#endif /* PROCESS_SANDBOX_H */
