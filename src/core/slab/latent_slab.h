/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Puts deferred objects into their latent slabs, and merges them when they are safe. */
#ifndef SLAB_LATENT_SLAB_H
#define SLAB_LATENT_SLAB_H

#include "gp/gp.h"

struct run;
struct slab_node;

void latent_slab_put(struct slab_node *node, struct run *run, const gp_cookie *cookie);
void latent_slab_put_named(struct slab_node *node, struct run *run, const gp_cookie *cookie);
unsigned latent_slab_merge_safe(struct slab_node *node);
unsigned latent_slab_take(struct slab_node *node, void **objects, unsigned room, gp_cookie *cookie);

#endif /* SLAB_LATENT_SLAB_H */
