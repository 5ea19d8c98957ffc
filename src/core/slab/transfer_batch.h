/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A transfer batch carries latent objects from the idle helper to a node, under one cookie. */
#ifndef SLAB_TRANSFER_BATCH_H
#define SLAB_TRANSFER_BATCH_H

#include "gp/gp.h"

#define TRANSFER_BATCHES   32
#define TRANSFER_BATCH_MAX 15
struct transfer_batch {
    struct transfer_batch *next;
    gp_cookie cookie;
    unsigned count;
    void *objects[TRANSFER_BATCH_MAX];
};
struct transfer_batch *transfer_batch_claim(void);
void transfer_batch_return(struct transfer_batch *batch);

#endif /* SLAB_TRANSFER_BATCH_H */
