/* SPDX-License-Identifier: MIT */
/* The option sandbox: which system calls the library may make (os/posix/few_calls.h). */
#ifndef RUNTIME_SANDBOX_H
#define RUNTIME_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

/* The option's choices, in this order. */
enum sandbox { SANDBOX_AUTO, SANDBOX_NEVER, SANDBOX_ALWAYS };

/* From the environment before the library has started, else at run time, with the lock of the options held. */
void sandbox_set(uint64_t choice);

/* Whether the option has been 1, so that it cannot become `choice` any more. */
bool sandbox_keeps_from(uint64_t choice);

/* At start: whether sequences and membarrier are left alone, because the process is to do without them for good. */
bool sandbox_is_wanted(void);

/* At start, last of all parts: from then on calls are few, if they are to be. */
void sandbox_start(void);

#endif /* RUNTIME_SANDBOX_H */
