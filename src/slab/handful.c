/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The pool of handfuls: objects that the idle helper carries from a CPU's latent cache to a node (preflush.c). The helper
 * claims a handful, the next holder of the node's lock returns it. Any thread, no locks.
 */
#include "slab/handful.h"

static struct handful pool[HANDFULS];
static uint32_t pool_used[HANDFULS];

/* An empty one; NULL: all are on their way. */
struct handful *handful_claim(void)
{
    for (unsigned i = 0; i < HANDFULS; i++) {
        uint32_t unused = 0;

        if (!load_relaxed(&pool_used[i]) && compare_exchange(&pool_used[i], &unused, 1u)) {
            pool[i].count = 0;
            return &pool[i];
        }
    }
    return NULL;
}

/* Release: its contents were read before it is claimed again. */
void handful_return(struct handful *handful)
{
    store_release(&pool_used[handful - pool], 0u);
}
