/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Visits of a node: objects come and go, and slabs. */
#ifndef SLAB_NODE_H
#define SLAB_NODE_H

#include "os/os.h"
#include "slab/node_lists.h"
#include "slab/slab.h"

static inline struct slab_node *node_here(const struct prudence_cache *cache)
{
    return &cache->body->nodes[os_node_of_cpu(os_cpu_current())];
}

static inline struct slab_node *node_of(const struct slab *slab)
{
    return &slab->cache->body->nodes[slab->node];
}

unsigned node_take(struct prudence_cache *cache, struct slab_node *node, void **objects,
                   unsigned count);
void node_put(struct prudence_cache *cache, void **objects, unsigned count);
bool node_put_latent(struct slab *slab, void *object, bool past_limit);
void node_flush(struct prudence_cache *cache, void **objects, unsigned count);
void node_overflow(struct prudence_cache *cache, void **objects, unsigned count, gp_cookie cookie);
void node_overflow_named(struct prudence_cache *cache, void **objects, unsigned count,
                         gp_cookie cookie);
unsigned node_take_waiting(struct slab_node *node, void **objects, unsigned room,
                           gp_cookie *cookie);
unsigned node_add_slab(struct slab_node *node, struct slab *slab, void **objects, unsigned count);
void node_adopt_live(struct slab_node *node, struct slab *slab);
bool node_has_latent(struct slab *slab, unsigned index);
void node_check_live(struct slab *slab, const char *what);
bool node_shrink_some(struct slab_node *node, unsigned keep, size_t wanted, size_t *bytes);
size_t node_shrink(struct slab_node *node, unsigned keep);
size_t node_shrink_to(struct prudence_cache *cache, unsigned keep);
bool node_decay(struct prudence_cache *cache, struct slab_node *node);
void node_try_shrink(struct slab_node *node, unsigned keep);
size_t node_shrink_until(struct slab_node *node, unsigned keep, size_t wanted);
size_t node_shrink_all(struct prudence_cache *cache, size_t wanted);
/* The free objects that an extension wants. */
struct node_filter {
    bool (*may_have)(const struct slab *slab); /* NULL allows any slab */
    /* Returns the wanted bits of each word of the free bitmap. */
    uint64_t (*select)(const struct slab *slab, unsigned word, unsigned data);
    unsigned data;
};
unsigned node_take_selected(struct slab_node *node, bool any_slab, const struct node_filter *filter,
                            void **objects, unsigned count);
void *node_take_one(struct slab_node *node, const struct node_filter *filter);
void node_add_slab_and_take(struct slab_node *node, struct slab *slab, void **object);
void node_put_selected(struct prudence_cache *cache, void **objects, unsigned count);
void node_hand_over(struct slab_node *node, struct transfer_batch *batch);
unsigned node_latent_objects(struct slab_node *node, uint64_t *bytes);

#endif /* SLAB_NODE_H */
