/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The lists of a node. Each slab is on the list that follows from its free, latent and live objects
 * (list_for). Because latent objects count, a deferral moves the slab at once to the list where it
 * will belong, which is pre-movement (rule 8). In the partial and draining lists, slabs with free
 * objects stand before those without.
 *
 * The caller of all functions holds the node's lock, except for node_lists_init(), node_lists_end()
 * and node_lists_free_bytes().
 */
#include "slab/node_lists.h"

#include "gp/gp.h"
#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/extension.h"
#include "slab/slab.h"

static enum slab_list list_for(const struct slab *slab)
{
    if (slab->free == slab->capacity)
        return likely(!slab->alone) ? SLAB_FREE : SLAB_RETIRED;
    if (slab->free + slab->latent == slab->capacity)
        return SLAB_DRAINING;
    if (slab->free || slab->latent)
        return slab->hollowed && slab->free ? SLAB_HOLLOW : SLAB_PARTIAL;
    return SLAB_FULL;
}

/* ---------------------------------------------------------------------------------- free slabs */

/* Policy: how many free slabs does a node keep? */
/* Most bytes of a node's free slabs that are not noted. */
#define FREE_UNNOTED ((size_t)64 << 10) /* bytes; not noted, so that nodes write the sum rarely */

/* Sum of the bytes that nodes noted; atomic. All CPUs write it, so it has cache lines of its
 * own. */
static struct noted {
    int64_t free_bytes;
} __attribute__((aligned(CACHE_LINES_APART))) noted;

/* Returns about how many bytes the free slabs of all caches and nodes have. */
uint64_t node_lists_free_bytes(void)
{
    int64_t bytes = load_relaxed(&noted.free_bytes);

    return bytes > 0 ? (uint64_t)bytes : 0;
}

/* Updates the process's count of free bytes, which leaves out a little of each node, so that few
 * slabs cost a locked operation. */
void node_lists_note_free(struct slab_node *node, size_t slab_bytes, size_t unnoted)
{
    int64_t more = (int64_t)node->free_slabs - (int64_t)node->free_noted;
    int64_t bytes = more * (int64_t)slab_bytes;

    if (likely((size_t)(bytes < 0 ? -bytes : bytes) <= unnoted))
        return;
    add_relaxed(&noted.free_bytes, bytes);
    store_relaxed(&node->free_noted, node->free_slabs); /* decay.c reads it without the lock */
}

/* ---------------------------------------------------------------------------------------- lists */

void node_lists_init(struct slab_node *node)
{
    os_lock_init(&node->lock, OS_RANK_NODE);
    list_init(&node->waiting);
    list_init(&node->away);
    for (unsigned list = 0; list < SLAB_LISTS; list++)
        list_init(&node->lists[list]);
}

/* Ends a node that has no slabs. */
void node_lists_end(struct slab_node *node, size_t slab_bytes)
{
    sub_relaxed(&noted.free_bytes, (int64_t)node->free_noted * (int64_t)slab_bytes);
    os_lock_destroy(&node->lock);
}

static void attach(struct slab_node *node, struct slab *slab, enum slab_list list)
{
    slab->list = (uint8_t)list;
    if (slab->free)
        list_add_head(&node->lists[list], &slab->link);
    else
        list_append(&node->lists[list], &slab->link);
    if (list == SLAB_FREE) {
        node->free_slabs++;
        node_lists_note_free(node, slab->cache->body->slab_bytes, FREE_UNNOTED);
    }
}

/* Removes the slab from its list. */
void node_lists_remove(struct slab_node *node, struct slab *slab)
{
    if (unlikely(node->hollow_at == &slab->link))
        node->hollow_at = slab->link.previous;
    list_remove(&slab->link);
}

static void detach(struct slab_node *node, struct slab *slab)
{
    node_lists_remove(node, slab);
    if (slab->list == SLAB_FREE) {
        node->free_slabs--;
        node_lists_note_free(node, slab->cache->body->slab_bytes, FREE_UNNOTED);
    }
}

/* Moves the slab to the right list after a change. `had_free` shows whether it had free objects
 * before. Returns whether the list changed. */
bool node_lists_place(struct slab_node *node, struct slab *slab, bool had_free)
{
    enum slab_list from = slab->list, to = list_for(slab);

    if ((from == to && had_free == (slab->free > 0)) || unlikely(from == SLAB_AWAY))
        return false;
    detach(node, slab);
    attach(node, slab, to);
    if (to == SLAB_FREE)
        store_relaxed(&slab->may_leave, 0); /* removes drift */
    if (to == SLAB_FREE && from != SLAB_FREE && slab->cache->flags & CACHE_TYPESAFE)
        slab->free_cookie = gp_snapshot(slab->cache->domain);
    return from != to;
}

/* Moves a slab that was away to the list where it belongs now. It is not type-safe. */
void node_lists_return(struct slab_node *node, struct slab *slab)
{
    list_remove(&slab->link);
    attach(node, slab, list_for(slab));
    node_lists_changed(node); /* it may have become free in between */
}

/* Adds a new slab to the node. */
void node_lists_join(struct slab_node *node, struct slab *slab, enum slab_list list)
{
    attach(node, slab, list);
    node->slabs++;
    slab_count(slab->cache);
    node->counts.grows++;
}

/* -------------------------------------------------------------------------------------- decay */

uint64_t slab_decay READ_MOSTLY = 100000000;

/* Returns the number of free slabs that decay keeps. Slabs used within the last one or two windows
 * of decay will be used again; keeping them saves a shrink, a grow and the page faults of both. */
unsigned node_lists_decay_keeps(struct slab_node *node)
{
    uint64_t decay = load_relaxed(&slab_decay), now;
    unsigned peak;

    if (!decay)
        return 0;
    node_lists_note_used(node); /* slabs of lone objects, for example, come without a note */
    now = os_clock_coarse_ns();
    if (now >= node->window_end || node->window_end - now > decay) {
        node->used_peak_before = node->used_peak;
        node->used_peak = node_lists_used(node);
        node->window_end = now + decay;
    }
    peak = (unsigned)max_size(node->used_peak, node->used_peak_before);
    return peak - node_lists_used(node);
}

/* ------------------------------------------------------------------------------------ excess */

static void take_out_slab(struct slab_node *node, struct slab *slab, struct list *excess)
{
    detach(node, slab);
    list_append(excess, &slab->link);
    node->slabs--;
    node->counts.shrinks++;
    os_event(shrink, slab->cache, slab->capacity);
}

/* Returns the free slab unused for longest, among those that may go. */
static struct slab *last_free(struct slab_node *node)
{
    struct list *item = node->lists[SLAB_FREE].previous;

    for (; item != &node->lists[SLAB_FREE]; item = item->previous) {
        struct slab *slab = list_entry(item, struct slab, link);

        if (likely(!load_relaxed(&slab->extensions)) || extensions_may_go(slab))
            return slab;
        node->kept = true;
    }
    return NULL;
}

/* Bytes of free slabs in the process with which each node may have as many as its limit. */
#define FREE_FEW ((uint64_t)1 << 20) /* bytes; fewer in the process are not too many */

/* Returns how many bytes of free slabs are too many (ADR 174). */
static uint64_t free_beyond(void)
{
    uint64_t most = max_u64(os_pages_spare(), FREE_FEW), bytes = node_lists_free_bytes();

    return bytes - min_u64(bytes, most);
}

/* Returns how many free slabs the node may keep. One may always stay, because the cache may be
 * about to want it. */
static size_t within_spare(const struct slab_node *node)
{
    size_t slab_bytes = list_first(&node->lists[SLAB_FREE], struct slab, link)->bytes;
    uint64_t beyond = free_beyond() / slab_bytes;

    return max_size(node->free_slabs - min_size(node->free_slabs, beyond), 1);
}

/* Moves slabs onto `excess`: retired ones, then free ones, oldest first, up to `wanted` bytes.
 * Keeps `keep` free slabs (0: none), more if demand wants them, fewer if the caches together have
 * too many, and all slabs with a latent bit, which are not free. Type-safe memory stays until a
 * grace period after the slab became free. Returns the number of slabs. */
unsigned node_lists_detach_excess(struct slab_node *node, unsigned keep, size_t wanted,
                                  struct list *excess)
{
    unsigned detached = 0;
    struct slab *slab;

    while (unlikely((slab = list_first(&node->lists[SLAB_RETIRED], struct slab, link)) != NULL) &&
           detached < NODE_SLABS_A_VISIT) {
        take_out_slab(node, slab, excess);
        detached++;
    }
    if (keep && node->free_slabs)
        keep = (unsigned)min_size(max_size(keep, node_lists_decay_keeps(node)), within_spare(node));
    while (node->free_slabs > keep && detached < NODE_SLABS_A_VISIT && wanted) {
        slab = last_free(node);
        if (!slab)
            break;
        if (slab->cache->flags & CACHE_TYPESAFE &&
            !gp_poll(slab->cache->domain, slab->free_cookie)) {
            gp_request(slab->cache->domain, slab->free_cookie);
            break;
        }
        take_out_slab(node, slab, excess);
        wanted -= min_size(wanted, slab->bytes);
        detached++;
    }
    return detached;
}

/* Returns whether node_lists_detach_excess() may find something. */
bool node_lists_have_excess(const struct slab_node *node, unsigned keep)
{
    return node->free_slabs > keep || !list_is_empty(&node->lists[SLAB_RETIRED]) ||
           (node->free_slabs > 1 && free_beyond());
}
