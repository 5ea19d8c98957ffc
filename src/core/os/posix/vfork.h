/* SPDX-License-Identifier: MIT */
/* Children of vfork, which share the parent's memory (see vfork.c). */
#ifndef OS_POSIX_VFORK_H
#define OS_POSIX_VFORK_H

#include "base/base.h"

/* Set in a child of vfork of a process with threads. */
extern HIDDEN __thread bool os_in_vfork_child __attribute__((tls_model("initial-exec")));

/* Called around the system call, in this order. The first returns a word for the others, which the
 * caller keeps in a register, because the child uses the parent's stack. The last returns what
 * vfork returns, for `result` of the system call, and sets errno. */
HIDDEN uint64_t vfork_prepare(void);
HIDDEN void vfork_child(uint64_t saved);
HIDDEN long vfork_parent(uint64_t saved, long result);

#endif /* OS_POSIX_VFORK_H */
