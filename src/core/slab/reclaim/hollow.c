/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Purges hollow pages, which are pages within slabs in use of which all objects are free (ADR 170).
 * A trim purges all. A round of decay purges those of slabs from which no object has come or gone
 * since an earlier round, a few at a time. Afterwards a slab is used only if others have
 * no free object. If every second one is, decay was wrong, and pauses for some rounds.
 *
 * A thread moves slabs that have some to SLAB_AWAY under the node's lock, purges their pages
 * without the lock, and moves the slabs back. No thread allocates from a slab that is away, and
 * nothing else writes to free objects, so the pages stay hollow. At the same time other threads may
 * free the other objects and put them into the latent slab; a slab that is away stays there, even
 * if all of it becomes free.
 *
 * What is kept in free objects must not go. So type-safe and constructed ones are skipped, and
 * those of slabs with extensions. Slabs with latent objects stay, because they will soon change.
 * So do those of a cache that has a window, because the destruction of the cache would unmap the
 * window under the system call.
 *
 * Locks: a node's lock guards its lists. The count of visitors holds the cache (all_caches.c), but
 * not during the system call: a function that replaces madvise() may wait for a thread that
 * destroys the cache. Then the slabs that are away hold the cache, as long as they have objects
 * that are live or latent. Those that have none leave the cache with the destruction
 * (hollow_leave), and end when the call is over.
 *
 * In a child of fork the slabs that other threads had away come back, except those that had left
 * their caches, which are lost. The forking thread had none: if it forks in a function that
 * replaces madvise(), it counts as being in the library (os_hands_full), and in the child it goes
 * on.
 */
#include "slab/reclaim/hollow.h"

#include "os/os.h"
#include "slab/all_caches.h"
#include "slab/node.h"
#include "slab/slab.h"

/* Policy: which pages within slabs in use go back? */
#define SLABS_AT_ONCE  16 /* slabs; taken at a time, so that the node's lock is held briefly */
#define RANGES_AT_ONCE 64 /* ranges; of pages in one haul, and those of one more slab */
#define RANGES_MAX     (RANGES_AT_ONCE + 32) /* ranges; room for one more slab */
#define FLAGS_KEPT                                                                                 \
    (CACHE_TYPESAFE | CACHE_DESTRUCT_SOON | CACHE_CLOSED | CACHE_COMMON | CACHE_CONSTRUCTED)

struct range {
    char *pages;
    size_t bytes;
};

/* Slabs that a thread has away, and the ranges of pages to purge. */
struct hollow {
    struct prudence_cache *cache; /* held; NULL if it was destroyed during a call */
    const struct slab *first;     /* of the node, to which a check comes back; never dereferenced */
    unsigned left;                /* slabs to read if `first` is no longer on the list */
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

/* Takes the slab off its list if it has hollow pages that may be purged. The cache may have got a
 * window since may_be_hollow(). Relaxed: a slab in the window came to the list after the window was
 * stored, and under the node's lock, which this thread holds. */
static bool take_away(struct slab_node *node, struct hollow *hollow, struct slab *slab)
{
    if (slab->latent || load_relaxed(&slab->extensions) ||
        load_relaxed(&slab->cache->body->window) || !os_pages_may_empty(slab->pages) ||
        !add_ranges(hollow, slab))
        return false;
    slab->idle = slab->solid = false;
    slab->hollowed = true;
    node_lists_remove(node, slab);
    slab->list = SLAB_AWAY;
    list_append(&node->away, &slab->link);
    hollow->slabs[hollow->slab_count++] = slab;
    return true;
}

/* Reads partial slabs, from the end of the list on. Those that stay go to its head, so the next
 * check finds others. Returns false if all have been read. */
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
        if (take_away(node, hollow, slab))
            continue;
        if (!hollow->first)
            hollow->first = slab;
        node_lists_remove(node, slab);
        list_add_head(partial, &slab->link);
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

/* Holds the cache again, and ends the slabs that have left it. If all have, the cache may be gone,
 * and is not touched. The lock of the list keeps destructions out. */
static void hold_again(struct hollow *hollow)
{
    unsigned stay = 0;

    os_lock_take(&slab_caches_lock);
    for (unsigned i = 0; i < hollow->slab_count; i++) {
        if (hollow->slabs[i]->list == SLAB_LEFT)
            slab_unmake_left(hollow->slabs[i]);
        else
            hollow->slabs[stay++] = hollow->slabs[i];
    }
    hollow->slab_count = stay;
    if (stay)
        cache_hold(hollow->cache);
    else
        hollow->cache = NULL;
    os_lock_release(&slab_caches_lock);
}

/* Purges pages of the slabs that are away, and returns these to their lists. For that time releases
 * the node's lock and lets the cache go. Returns false if the system refuses, or if the cache was
 * destroyed: then the lock is gone, too. */
static bool purge_and_return(struct slab_node *node, struct hollow *hollow, size_t *bytes)
{
    bool purged;

    if (!hollow->slab_count)
        return true;
    os_lock_release(&node->lock);
    cache_let_go(hollow->cache);
    purged = purge_ranges(hollow, bytes);
    hold_again(hollow);
    if (!hollow->cache)
        return false;
    os_lock_take(&node->lock);
    for (unsigned i = 0; i < hollow->slab_count; i++) {
        if (!purged)
            hollow->slabs[i]->hollowed = false;
        node_lists_return(node, hollow->slabs[i]);
    }
    return purged;
}

/* Returns false if the system refuses or the cache was destroyed. */
static bool purge_node(struct hollow *hollow, struct slab_node *node, size_t *bytes)
{
    bool purged, more;

    hollow->first = NULL;
    os_lock_take(&node->lock);
    hollow->left = node->slabs;
    do {
        more = send_away(node, hollow);
        purged = purge_and_return(node, hollow, bytes);
    } while (purged && more);
    if (hollow->cache)
        os_lock_release(&node->lock);
    return purged;
}

/* Saves visits to caches of which take_away() takes no slab. */
static bool may_be_hollow(const struct prudence_cache *cache)
{
    return cache->percpu && !(cache->flags & FLAGS_KEPT) && !cache->body->destructor &&
           !load_relaxed(&cache->body->window);
}

/* Purges the hollow pages of the cache that is held. Returns false if the system refuses. */
static bool purge_cache(struct hollow *hollow, size_t *bytes)
{
    bool purged = true;

    for (unsigned i = 0; purged && may_be_hollow(hollow->cache) && i < os_node_count(); i++)
        purged = purge_node(hollow, &hollow->cache->body->nodes[i], bytes);
    return purged || !hollow->cache;
}

/* Purges the hollow pages of all caches, and returns their bytes. Begins anew when a cache was
 * destroyed during a call; slabs whose pages went are not read again. The caller holds nothing. */
size_t hollow_purge(void)
{
    struct hollow hollow UNINITIALIZED;
    bool go_on = true;
    size_t bytes = 0;

    os_hands_full();
    hollow.cache = NULL;
    while (go_on && (hollow.cache = all_caches_hold_after(hollow.cache)))
        go_on = purge_cache(&hollow, &bytes);
    if (hollow.cache)
        cache_let_go(hollow.cache);
    os_hands_empty();
    return bytes;
}

/* ---------------------------------------------------------------------------------------- decay */

#define LOOKS_LEAST     128 /* slabs; least that a round of decay reads on a node */
#define LOOKS_SHIFT     3   /* shift; of all slabs, what a round reads of more */
#define RANGES_OF_DECAY 16  /* ranges; in a visit, which takes some 30 us */
#define PAUSE_MOST      64  /* rounds; most left out after pages were wanted again */

/* Begins a round on the node. Returns how many slabs to read. */
static unsigned round_looks(struct slab_node *node)
{
    unsigned made = node->hollow_made, regret = node->hollow_regret;

    if (regret > made / 2)
        node->hollow_pause = narrow(uint8_t, min_size(2u * node->hollow_pause + 2, PAUSE_MOST));
    else if (made)
        node->hollow_pause = 0;
    node->hollow_made = node->hollow_regret = 0;
    return (unsigned)max_size(LOOKS_LEAST, node->slabs >> LOOKS_SHIFT);
}

/* Reads up to *looks partial slabs, from where the last check ended. The first check marks a slab
 * idle. Sets *found if there was one to mark or to purge. */
static void send_idle_away(struct slab_node *node, struct hollow *hollow, unsigned *looks,
                           bool *found)
{
    struct list *partial = &node->lists[SLAB_PARTIAL];
    struct list *item = node->hollow_at ? node->hollow_at : partial->previous;

    hollow->slab_count = hollow->range_count = 0;
    for (; item != partial && *looks && hollow->slab_count < SLABS_AT_ONCE &&
           hollow->range_count < RANGES_OF_DECAY;
         --*looks) {
        struct slab *slab = list_entry(item, struct slab, link);

        item = item->previous;
        if (slab->solid || !slab->free)
            continue;
        *found = true;
        if (!slab->idle) {
            slab->idle = true;
        } else if (!take_away(node, hollow, slab)) {
            slab->solid = slab->latent == 0; /* else it will soon change */
            slab->idle = !slab->solid;
        }
    }
    node->hollow_at = item != partial ? item : NULL;
}

/* Does a visit to the node. Returns true if the round is over there; false with *held = NULL if the
 * cache was destroyed. */
static bool decay_node(struct prudence_cache **held, struct slab_node *node,
                       struct hollow_place *place)
{
    struct hollow hollow UNINITIALIZED;
    bool purged, pauses = false, over;
    size_t bytes = 0;

    hollow.cache = *held;
    os_lock_take(&node->lock);
    if (!place->begun) {
        *place = (struct hollow_place){.node = place->node, .begun = true};
        place->looks = round_looks(node);
        pauses = node->hollow_pause > 0;
        node->hollow_pause -= pauses;
    }
    if (pauses || node->still) {
        os_lock_release(&node->lock);
        return true;
    }
    send_idle_away(node, &hollow, &place->looks, &place->found);
    node->hollow_made += hollow.slab_count;
    purged = purge_and_return(node, &hollow, &bytes);
    *held = hollow.cache;
    if (!hollow.cache)
        return false;
    over = !purged || !place->looks || !node->hollow_at;
    if (!node->hollow_at && !place->found)
        node->still = node->decayed;
    os_lock_release(&node->lock);
    return over;
}

/* Does a visit of a round of decay to the cache, which the caller holds, afterwards, too, unless
 * *held is NULL: then it was destroyed. Returns true if the round is over there. Does
 * nothing for a thread that holds a lock of a layer above, or is in a call of a function that
 * replaces madvise(). */
bool hollow_decay(struct prudence_cache **held, struct hollow_place *place)
{
    if (!may_be_hollow(*held) || !os_only_visits() || os_in_mapping_call ||
        !load_relaxed(&slab_decay))
        return true;
    while (place->node < os_node_count()) {
        if (!decay_node(held, &(*held)->body->nodes[place->node], place))
            return false;
        place->begun = false;
        place->node++;
    }
    return true;
}

/* Called by the destruction, under slab_caches_lock: slabs that are away and whose objects are all
 * free leave the cache. */
void hollow_leave(struct prudence_cache *cache)
{
    for (unsigned i = 0; i < os_node_count(); i++) {
        struct slab_node *node = &cache->body->nodes[i];
        struct list *item, *following;

        os_lock_take(&node->lock);
        list_for_each_safe(item, following, &node->away)
        {
            struct slab *slab = list_entry(item, struct slab, link);

            if (slab->free < slab->capacity || load_relaxed(&slab->extensions))
                continue;
            list_remove(&slab->link);
            slab->list = SLAB_LEFT;
            node->slabs--;
            node->counts.shrinks++;
            slab_leave_cache(slab);
        }
        os_lock_release(&node->lock);
    }
}

/* Runs in a forked child, under the node's lock. */
void hollow_fork_child(struct slab_node *node)
{
    struct slab *slab;

    while ((slab = list_first(&node->away, struct slab, link)))
        node_lists_return(node, slab);
}
