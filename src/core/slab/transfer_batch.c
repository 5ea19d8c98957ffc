/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The pool of transfer batches, in which the idle helper carries objects from a CPU's latent cache
 * to a node (preflush.c). The helper claims a transfer batch, and the next holder of the node's
 * lock returns it. Any thread may call these functions, without locks.
 */
#include "slab/transfer_batch.h"

static struct transfer_batch pool[TRANSFER_BATCHES];
static uint32_t pool_used[TRANSFER_BATCHES];

/* Claims an empty transfer batch. Returns NULL if all are on their way. */
struct transfer_batch *transfer_batch_claim(void)
{
    for (unsigned i = 0; i < TRANSFER_BATCHES; i++) {
        uint32_t unused = 0;

        if (!load_relaxed(&pool_used[i]) && compare_exchange(&pool_used[i], &unused, 1u)) {
            pool[i].count = 0;
            return &pool[i];
        }
    }
    return NULL;
}

/* Release: the contents were read before the transfer batch is claimed again. */
void transfer_batch_return(struct transfer_batch *batch)
{
    store_release(&pool_used[batch - pool], 0u);
}
