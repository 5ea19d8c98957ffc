/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A node holds the slabs of a cache on one NUMA node in lists, and the lock of these lists. */
#ifndef SLAB_NODE_H
#define SLAB_NODE_H

#include "base/list.h"
#include "os/os.h"
#include "slab/slab.h"

/* The list of the node that a slab is on. */
enum slab_list {
    SLAB_FULL,     /* nothing free, nothing latent */
    SLAB_PARTIAL,  /* some free or latent, some live; slabs with free objects first */
    SLAB_DRAINING, /* all allocated objects latent; used last, and only for truly free objects */
    SLAB_FREE,     /* everything free */
    SLAB_RETIRED,  /* freed lone object; the next thread that leaves takes it out */
    SLAB_LISTS,
};

/* Counters of a node, written under the lock. */
struct node_counts {
    uint64_t allocations; /* handed out past an object cache: misses, bypasses */
    uint64_t frees;       /* objects freed past an object cache */
    uint64_t deferred;    /* objects deferred straight into their latent slab */
    uint64_t merges, merged_objects, premoved_slabs, grows, shrinks;
    uint64_t overflowed; /* latent objects put into latent slabs because the ring was full */
    uint64_t flushes, flushed_objects;
};

struct slab_node {
    struct os_lock lock __attribute__((aligned(CACHE_LINE)));
    struct list lists[SLAB_LISTS];
    unsigned free_slabs; /* on SLAB_FREE */
    unsigned free_noted; /* part of free_slabs that is in the process's count (node_free_bytes) */
    unsigned slabs;      /* on all lists */
    struct list waiting; /* slabs with waiting objects, oldest cookie first */
    unsigned latent;     /* objects in latent slabs */
    uint64_t latent_bytes;
    /* Most slabs in use, in this window of decay and the last. */
    unsigned used_peak, used_peak_before;
    uint64_t window_end; /* ns */
    struct node_counts counts;
    bool kept;    /* an extension made a free slab stay; scratch for leave() */
    bool settled; /* tidying found nothing, and no thread has come since; atomic */
    /* The node whose pages the last slab got, if not this one; atomic, a hint. */
    struct slab_node *helper;
    /* Pushed by the idle helper without the lock, received under it. */
    struct transfer_batch *handover;
};

static inline struct slab_node *node_here(const struct prudence_cache *cache)
{
    return &cache->nodes[os_node_of_cpu(os_cpu_current())];
}

static inline struct slab_node *node_of(const struct slab *slab)
{
    return &slab->cache->nodes[slab->node];
}

void node_init(struct slab_node *node);
void node_end(struct slab_node *node, size_t slab_bytes);
uint64_t node_free_bytes(void);
unsigned node_take(struct prudence_cache *cache, struct slab_node *node, void **objects,
                   unsigned count);
void node_put(struct prudence_cache *cache, void **objects, unsigned count);
bool node_put_latent(struct slab *slab, void *object, bool past_limit);
void node_flush(struct prudence_cache *cache, void **objects, unsigned count);
void node_overflow(struct prudence_cache *cache, void **objects, unsigned count, gp_cookie cookie);
unsigned node_add_slab(struct slab_node *node, struct slab *slab, void **objects, unsigned count);
void node_adopt_live(struct slab_node *node, struct slab *slab);
void node_check_live(struct slab *slab, const char *what);
bool node_shrink_some(struct slab_node *node, unsigned keep, size_t wanted, size_t *bytes);
size_t node_shrink(struct slab_node *node, unsigned keep);
/* Most slabs whose waiting objects one visit merges, and most free slabs that it takes out, so that
 * the lock is not held for long. */
#define NODE_SLABS_A_VISIT 64
bool node_tidy(struct prudence_cache *cache, struct slab_node *node);
void node_try_shrink(struct slab_node *node, unsigned keep);
size_t node_shrink_until(struct slab_node *node, unsigned keep, size_t wanted);
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

extern uint64_t slab_decay;     /* ns; the option decay */
extern bool slab_process_ends;  /* set for the last look for double frees (doubles.c) */
extern bool slab_spares_latent; /* prefers a free slab to one that is mostly latent */

#endif /* SLAB_NODE_H */
