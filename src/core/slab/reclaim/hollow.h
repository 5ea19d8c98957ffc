/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Pages within slabs in use of which all objects are free go back to the system. */
#ifndef SLAB_RECLAIM_HOLLOW_H
#define SLAB_RECLAIM_HOLLOW_H

#include "base/base.h"

struct slab_node;

size_t hollow_purge(void);
void hollow_fork_child(struct slab_node *node);

#endif /* SLAB_RECLAIM_HOLLOW_H */
