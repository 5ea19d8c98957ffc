/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Starts, stops and forks the slab layer (start.c, fork.c). */
#ifndef SLAB_START_H
#define SLAB_START_H

#include "base/base.h"

bool slab_start(void);
void slab_stop(void);
void slab_fork_prepare(void);
void slab_fork_child(bool whole);
void slab_fork_done(void);

/* As for a fork, no slab goes in between, no block changes its size, and no thread carries
 * objects. The caller may own CPUs' caches and take nodes' locks. */
void slab_fork_hold(void);
void slab_fork_let_go(void);

#endif /* SLAB_START_H */
