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

#endif /* SLAB_START_H */
