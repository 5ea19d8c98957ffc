/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Checks once, at the end of a process, for objects that were freed or deferred twice. */
#ifndef SLAB_DOUBLE_FREE_H
#define SLAB_DOUBLE_FREE_H

#include "base/base.h"

/* Reports the first one found, and ends the process. Called once, when the process ends, by a
 * thread that is not inside the library. */
void double_free_look(bool goes_on);
bool double_free_may_look(void); /* false in a forked child */
void double_free_fork_child(void);
/* Returns the number of CPUs' caches that were skipped because other threads held them. */
uint64_t double_free_passed_over(void);

#endif /* SLAB_DOUBLE_FREE_H */
