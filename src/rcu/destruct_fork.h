/* SPDX-License-Identifier: MIT */
/* Destructors and fork (see destruct_fork.c). */
#ifndef RCU_DESTRUCT_FORK_H
#define RCU_DESTRUCT_FORK_H

#include "base/base.h"

/* Counts pending destructors again in a forked child. Unless `whole`, fork took no lock, so the
 * child cannot count. */
void destruct_fork_child(bool whole);

#endif /* RCU_DESTRUCT_FORK_H */
