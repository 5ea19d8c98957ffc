/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Purges hollow pages, which are pages within slabs in use of which all objects are free (ADR 170).
 *
 * A thread moves slabs that have some to SLAB_AWAY under the node's lock, purges their pages
 * without the lock, and moves the slabs back. No thread allocates from a slab that is away, and
 * nothing else writes to free objects, so the pages stay hollow. Meanwhile other threads may free
 * the other objects and put them into the latent slab; a slab that is away stays there, even if all
 * of it becomes free.
 *
 * What is kept in free objects must not go. So type-safe and constructed ones are left out, and
 * those of slabs with extensions. Slabs of a window stay as well, because inlined code knows their
 * places, and slabs with latent objects, which will soon change.
 *
 * Locks: a node's lock guards its lists. The count of visitors holds the cache (all_caches.c). In a
 * child of fork the slabs that other threads had away come back. The forking thread had none: if it
 * forks in a function that replaces madvise(), it counts as being in the library (os_hands_full),
 * and in the child it goes on.
 */
#include "slab/reclaim/hollow.h"

#include "os/os.h"
#include "slab/all_caches.h"
#include "slab/node.h"
#include "slab/slab.h"

#define SLABS_AT_ONCE  16
#define RANGES_AT_ONCE 64 /* and those of one more slab */
#define RANGES_MAX     (RANGES_AT_ONCE + 32)

#define FLAGS_KEPT                                                                                 \
    (CACHE_TYPESAFE | CACHE_DESTRUCT_SOON | CACHE_CLOSED | CACHE_COMMON | CACHE_CONSTRUCTED)

struct range {
    char *pages;
    size_t bytes;
};

/* Slabs that a thread has away, and the ranges of pages to purge. */
struct hollow {
    const struct slab *first; /* of the node, to which a look comes back; never dereferenced */
    unsigned left;            /* slabs to look at if `first` has left the list */
    struct slab *slabs[SLABS_AT_ONCE];
    struct range ranges[RANGES_MAX];
    unsigned slab_count, range_count;
};

/* Returns whether objects of the slab lie in the page at `at`, and all of these are free. */
static bool is_hollow(struct slab *slab, size_t at)
{
    size_t stride = slab->cache->body->stride, colored = slab_front_margin(slab);
    size_t first = at > colored ? (at - colored) / stride : 0;
    size_t end = at + os_page_size > colored ? (at + os_page_size - colored - 1) / stride + 1 : 0;

    end = min_size(end, slab->capacity);
    return first < end &&
           bits_find_clear(slab_free_bits(slab), (unsigned)first, (unsigned)end) == (unsigned)end;
}

/* Adds the ranges of hollow pages of a slab, as far as there is room. Returns false if it has
 * none. */
static bool add_ranges(struct hollow *hollow, struct slab *slab)
{
    struct range *last = NULL;

    for (size_t at = 0; at < slab->bytes; at += os_page_size) {
        char *page = (char *)slab->pages + at;

        if (!is_hollow(slab, at))
            continue;
        if (last && last->pages + last->bytes == page) {
            last->bytes += os_page_size;
        } else if (hollow->range_count < RANGES_MAX) {
            last = &hollow->ranges[hollow->range_count++];
            *last = (struct range){.pages = page, .bytes = os_page_size};
        }
    }
    return last != NULL;
}

/* Looks at partial slabs, from the end of the list on. They go to its head, at once or when they
 * come back, so the next look finds others. Returns false if all have been looked at. */
static bool send_away(struct slab_node *node, struct hollow *hollow)
{
    struct list *partial = &node->lists[SLAB_PARTIAL], *item = partial->previous;

    hollow->slab_count = hollow->range_count = 0;
    while (item != partial && hollow->left && hollow->slab_count < SLABS_AT_ONCE &&
           hollow->range_count < RANGES_AT_ONCE) {
        struct slab *slab = list_entry(item, struct slab, link);

        if (slab == hollow->first)
            return false;
        item = item->previous;
        if (!slab->free)
            continue;
        hollow->left--;
        if (!hollow->first)
            hollow->first = slab;
        list_remove(&slab->link);
        if (slab->latent || slab->hollowed || load_relaxed(&slab->extensions) ||
            !add_ranges(hollow, slab)) {
            list_add_head(partial, &slab->link);
            continue;
        }
        slab->hollowed = true;
        slab->list = SLAB_AWAY;
        list_append(&node->away, &slab->link);
        hollow->slabs[hollow->slab_count++] = slab;
    }
    return item != partial && hollow->left;
}

/* Purges. Returns false if the system refuses, as for locked memory. */
static bool purge_ranges(const struct hollow *hollow, size_t *bytes)
{
    for (unsigned i = 0; i < hollow->range_count; i++) {
        if (!os_pages_empty(hollow->ranges[i].pages, hollow->ranges[i].bytes))
            return false;
        *bytes += hollow->ranges[i].bytes;
    }
    return true;
}

/* Returns false if it makes no sense to go on. */
static bool purge_node(struct slab_node *node, size_t *bytes)
{
    struct hollow hollow UNINITIALIZED;
    bool purged, more;

    hollow.first = NULL;
    os_lock_take(&node->lock);
    hollow.left = node->slabs;
    do {
        more = send_away(node, &hollow);
        os_lock_release(&node->lock);
        purged = purge_ranges(&hollow, bytes);
        os_lock_take(&node->lock);
        for (unsigned i = 0; i < hollow.slab_count; i++) {
            if (!purged)
                hollow.slabs[i]->hollowed = false;
            node_lists_return(node, hollow.slabs[i]);
        }
    } while (purged && more);
    os_lock_release(&node->lock);
    return purged;
}

static bool may_be_hollow(const struct prudence_cache *cache)
{
    return cache->percpu && !(cache->flags & FLAGS_KEPT) && !cache->body->destructor &&
           !load_relaxed(&cache->body->window);
}

/* Purges the hollow pages of all caches, and returns their bytes. The caller holds nothing. */
size_t hollow_purge(void)
{
    struct prudence_cache *cache = NULL;
    bool go_on = true;
    size_t bytes = 0;

    os_hands_full();
    while (go_on && (cache = all_caches_hold_after(cache)))
        for (unsigned i = 0; go_on && may_be_hollow(cache) && i < os_node_count(); i++)
            go_on = purge_node(&cache->body->nodes[i], &bytes);
    if (cache)
        cache_let_go(cache);
    os_hands_empty();
    return bytes;
}

/* Runs in a forked child, under the node's lock. */
void hollow_fork_child(struct slab_node *node)
{
    struct slab *slab;

    while ((slab = list_first(&node->away, struct slab, link)))
        node_lists_return(node, slab);
}
