/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Pages within slabs in use of which all objects are free go back to the system. */
#ifndef SLAB_RECLAIM_HOLLOW_H
#define SLAB_RECLAIM_HOLLOW_H

#include "base/base.h"

struct prudence_cache;
struct slab_node;

/* Where a round of decay is in a cache; 0 at first. */
struct hollow_place {
    unsigned node, looks; /* slabs to read in this round */
    bool begun, found;
};

bool hollow_decay(struct prudence_cache **held, struct hollow_place *place);
size_t hollow_purge(void);
void hollow_leave(struct prudence_cache *cache);
void hollow_fork_child(struct slab_node *node);

#endif /* SLAB_RECLAIM_HOLLOW_H */
