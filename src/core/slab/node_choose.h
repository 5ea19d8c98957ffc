/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Chooses the slab of a node to refill from. */
#ifndef SLAB_NODE_CHOOSE_H
#define SLAB_NODE_CHOOSE_H

#include "base/base.h"

struct slab;
struct slab_node;

extern bool slab_spares_latent; /* prefers a free slab to one that is mostly latent */
struct slab *node_choose(const struct slab_node *node);

#endif /* SLAB_NODE_CHOOSE_H */
