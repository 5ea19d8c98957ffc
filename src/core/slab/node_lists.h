/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A node holds the slabs of a cache on one NUMA node in lists, and the lock of these lists. */
#ifndef SLAB_NODE_LISTS_H
#define SLAB_NODE_LISTS_H

#include "base/list.h"
#include "os/os.h"
#include "slab/figures.h"
#include "slab/slab.h"

/* The list of the node that a slab is on. */
enum slab_list {
    SLAB_FULL,     /* nothing free, nothing latent */
    SLAB_PARTIAL,  /* some free or latent, some live; slabs with free objects first */
    SLAB_HOLLOW,   /* like these, but hollow pages were purged; used last of all */
    SLAB_DRAINING, /* all allocated objects latent; used last, and only for truly free objects */
    SLAB_FREE,     /* everything free */
    SLAB_RETIRED,  /* freed lone object; the next thread that leaves takes it out */
    SLAB_LISTS,
    SLAB_AWAY, /* pages are being purged, so no thread allocates there (hollow.c) */
    SLAB_LEFT, /* of no cache any more; the thread that had it away ends it */
};
_Static_assert(FIELD_HOLDS(struct slab, list, SLAB_LEFT), "no list is cut off");

/* Counters of a node, written under the lock. */
struct node_counts {
    uint64_t allocations; /* handed out past an object cache: misses, bypasses */
    uint64_t frees;       /* objects freed past an object cache */
    uint64_t deferred;    /* objects deferred straight into their latent slab */
    NODE_COUNTERS(COUNTER_FIELD)
};

struct slab_node {
    struct os_lock lock __attribute__((aligned(CACHE_LINE)));
    struct list lists[SLAB_LISTS];
    unsigned free_slabs; /* on SLAB_FREE */
    unsigned
        free_noted;  /* part of free_slabs that is in the process's count (node_lists_free_bytes) */
    unsigned slabs;  /* on all lists */
    unsigned latent; /* objects in latent slabs */
    uint64_t latent_bytes;
    /* Where decay goes on to search for hollow pages, in the partial list; NULL: at its end. */
    struct list *hollow_at;
    /* Most slabs in use, in this window of decay and the last. */
    unsigned used_peak, used_peak_before;
    uint64_t window_end; /* ns */
    struct node_counts counts;
    bool kept;            /* an extension made a free slab stay; scratch for node_leave() */
    bool decayed;         /* decay found nothing, and no thread has come since; atomic */
    bool still;           /* nor did it find hollow pages that may go */
    uint8_t hollow_pause; /* rounds of decay to leave out, because pages were regretted */
    /* The node whose pages the last slab got, if not this one; atomic, a hint. */
    struct slab_node *helper;
    /* Pushed by the idle helper without the lock, received under it. */
    struct transfer_batch *handover;
    struct list waiting;                 /* slabs with waiting objects, oldest cookie first */
    struct list away;                    /* slabs whose `list` is SLAB_AWAY */
    unsigned hollow_made, hollow_regret; /* slabs whose pages went, and that were used again */
};

/* Returns the number of slabs with objects that are live or latent. */
static inline unsigned node_lists_used(const struct slab_node *node)
{
    return node->slabs - node->free_slabs;
}

static inline void node_lists_note_used(struct slab_node *node)
{
    if (node_lists_used(node) > node->used_peak)
        node->used_peak = node_lists_used(node);
}

/* Makes decay check the node again. */
static inline void node_lists_changed(struct slab_node *node)
{
    if (node->decayed) {
        store_relaxed(&node->decayed, false);
        node->still = false;
    }
}

void node_lists_init(struct slab_node *node);
void node_lists_end(struct slab_node *node, size_t slab_bytes);
uint64_t node_lists_free_bytes(void);
void node_lists_note_free(struct slab_node *node, size_t slab_bytes, size_t unnoted);
bool node_lists_place(struct slab_node *node, struct slab *slab, bool had_free);
void node_lists_remove(struct slab_node *node, struct slab *slab);
void node_lists_return(struct slab_node *node, struct slab *slab);
void node_lists_join(struct slab_node *node, struct slab *slab, enum slab_list list);
unsigned node_lists_decay_keeps(struct slab_node *node);
/* Most slabs whose waiting objects one visit merges, and most free slabs that it takes out, so that
 * the lock is not held for long. */
#define NODE_SLABS_A_VISIT 64
bool node_lists_have_excess(const struct slab_node *node, unsigned keep);
unsigned node_lists_detach_excess(struct slab_node *node, unsigned keep, size_t wanted,
                                  struct list *excess);

extern uint64_t slab_decay; /* ns; the option decay */

#endif /* SLAB_NODE_LISTS_H */
