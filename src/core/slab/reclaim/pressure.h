/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* When memory is short: waits instead of failing, drains and purges. */
#ifndef SLAB_RECLAIM_PRESSURE_H
#define SLAB_RECLAIM_PRESSURE_H

#include "os/os.h"

struct prudence_cache;

struct reclaim {
    uint64_t began, pause; /* ns */
    bool go_on;            /* the last wait ended with a grace period */
};
bool pressure_reclaim(struct prudence_cache *cache, os_alloc_flags flags, struct reclaim *reclaim);
void pressure_purge(void);

#endif /* SLAB_RECLAIM_PRESSURE_H */
