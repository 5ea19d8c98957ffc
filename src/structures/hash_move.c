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

/* The end between two parts that follow each other: of the smallest order for which they are two. */
static uintptr_t end_between(uint64_t part, uint64_t next)
{
    return PRUDENCE_HASH_END((unsigned)__builtin_ctzll(part ^ next) + 1);
}

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
            first = end_between(part, next);
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
            store_release(&last->next, end_between(part, next));
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

/*
 * One chain of the parts, whose buckets are locked: behind the last node of each, the first of the next. The end is that
 * of the last part. It tells for how many buckets the whole group was cut from the next one, which readers must know that
 * have an array with still fewer. Returns the first link.
 */
static uintptr_t join_parts(uintptr_t *buckets, uint64_t group, unsigned low, unsigned high)
{
    uintptr_t first, last, *end = &first;
    uint64_t part = group;

    do {
        uintptr_t link = hash_link_of(load_relaxed(&buckets[part]));

        if (is_node(link)) {
            store_release(end, link);
            end = last_link(end);
            link = load_relaxed(end);
        }
        last = link;
    } while (hash_next_part(&part, low, high));
    store_release(end, last);
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
