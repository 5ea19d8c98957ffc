/* SPDX-License-Identifier: MIT */
/*
 * Moving a group of buckets from one array to another. Readers may be anywhere in the chains, and at the buckets of both
 * arrays, at every step; see hash.h for what they do.
 */
#include "structures/hash.h"

/* Passes the nodes from *link on that belong to the part; *link is then what follows. Returns the last; NULL: none. */
static struct prudence_hash_node *pass_part(uintptr_t *link, uint64_t part, uint64_t mask)
{
    struct prudence_hash_node *last = NULL;

    while (is_node(*link) && (prudence_hash_node_(*link)->hash & mask) == part) {
        last = prudence_hash_node_(*link);
        *link = load_relaxed(&last->next);
    }
    return last;
}

/* -------------------------------------------------------------------------------------- splitting */

/*
 * The new buckets: each is its part's first node, or an end. They are locked, so that no writer changes a chain that
 * is not cut yet. Readers that find them run on into the parts behind, which does no harm.
 */
static void set_parts(uintptr_t link, uintptr_t to, uint64_t group, unsigned low)
{
    uintptr_t *buckets = view_words(to);
    unsigned order = view_order(to);
    uint64_t part = group, next = group;
    bool more;

    do {
        uintptr_t first = link;
        bool empty = !pass_part(&link, part, hash_mask(order));

        more = hash_next_part(&next, low, order);
        if (empty && more)
            first = PRUDENCE_HASH_END(order);
        store_release(&buckets[part], first | HASH_LOCKED);
        part = next;
    } while (more);
}

/* Cuts the chain behind each part but the last: readers that meet such an end find the new buckets set. */
static void cut_parts(uintptr_t link, uintptr_t to, uint64_t group, unsigned low)
{
    uintptr_t *buckets = view_words(to);
    unsigned order = view_order(to);
    uint64_t part = group, next = group;
    bool more;

    do {
        struct prudence_hash_node *last = pass_part(&link, part, hash_mask(order));

        more = hash_next_part(&next, low, order);
        if (last && more)
            store_release(&last->next, PRUDENCE_HASH_END(order));
        hash_unlock(&buckets[part], hash_link_of(load_relaxed(&buckets[part])));
        part = next;
    } while (more);
}

static void split(uintptr_t from, uintptr_t to, uint64_t group)
{
    uintptr_t *bucket = &view_words(from)[group];
    uintptr_t link = hash_lock(bucket);

    if (link & HASH_MOVED)
        return;
    set_parts(link, to, group, view_order(from));
    cut_parts(link, to, group, view_order(from));
    hash_unlock(bucket, link | HASH_MOVED);
}

/* --------------------------------------------------------------------------------------- joining */

/* Where the chain ends: the link there. */
static uintptr_t *last_link(uintptr_t *link)
{
    while (is_node(load_relaxed(link)))
        link = &prudence_hash_node_(load_relaxed(link))->next;
    return link;
}

/* One chain of the parts, whose buckets are locked. An end of a larger array at its end would send readers of the new one
 * back for ever, so it gets one that fits every array. Returns its first link. */
static uintptr_t join_parts(uintptr_t *buckets, uint64_t group, unsigned low, unsigned high)
{
    uintptr_t first = PRUDENCE_HASH_END(0);
    uintptr_t *end = &first;
    uint64_t part = group;

    do {
        uintptr_t link = hash_link_of(load_relaxed(&buckets[part]));

        if (is_node(link)) {
            store_release(end, link);
            end = last_link(end);
        }
    } while (hash_next_part(&part, low, high));
    store_release(end, PRUDENCE_HASH_END(0));
    return first;
}

static void join(uintptr_t from, uintptr_t to, uint64_t group)
{
    uintptr_t *buckets = view_words(from);
    unsigned low = view_order(to), high = view_order(from);
    uint64_t part = group;

    do {
        if (hash_lock(&buckets[part]) & HASH_MOVED)
            return; /* the first: the group was moved */
    } while (hash_next_part(&part, low, high));
    store_release(&view_words(to)[group], join_parts(buckets, group, low, high));
    part = group;
    do
        hash_unlock(&buckets[part], hash_link_of(load_relaxed(&buckets[part])) | HASH_MOVED);
    while (hash_next_part(&part, low, high));
}

void hash_move(uintptr_t from, uintptr_t to, uint64_t hash)
{
    if (view_order(from) < view_order(to))
        split(from, to, hash & hash_mask(view_order(from)));
    else
        join(from, to, hash & hash_mask(view_order(to)));
}
