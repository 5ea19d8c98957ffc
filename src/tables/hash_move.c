/* SPDX-License-Identifier: MIT */
/*
 * Moves a group of buckets from one array to another. A group is one bucket of the smaller array,
 * and adjacent buckets of the larger array, the *parts*. At every step, readers may be anywhere in
 * the chains and at the buckets of both arrays; hash.h says how they find their way.
 */
#include "tables/hash.h"
#include "tables/hash_bucket.h"
#include "tables/hash_move.h"

/* Parts of a group, in the order of their hashes. */
struct parts {
    uintptr_t *buckets; /* buckets of the larger array */
    unsigned order;     /* order of the larger array */
    uint64_t first, end;
};

static struct parts parts_of(uintptr_t larger, uintptr_t smaller, uint64_t group)
{
    unsigned more = view_order(larger) - view_order(smaller);

    return (struct parts){.buckets = view_words(larger),
                          .order = view_order(larger),
                          .first = group << more,
                          .end = (group + 1) << more};
}

/* Returns the end between a part and the next one, which has the smallest order for which they are
 * two. */
static uintptr_t end_behind(const struct parts *parts, uint64_t part)
{
    return PRUDENCE_HASH_END(parts->order - (unsigned)__builtin_ctzll(part + 1));
}

/* Locks the first bucket of a group. Fork waits for this bucket or for `stepping`. */
static uintptr_t lock_first_of(uintptr_t *bucket, bool stepping)
{
    return stepping ? hash_bucket_lock(bucket) : hash_bucket_lock_first(bucket);
}

/* ------------------------------------------------------------------------------------ splitting */

/* Moves *link past the nodes of the part. Returns the last of these nodes, or NULL. */
static struct prudence_hash_node *pass_part(uintptr_t *link, const struct parts *parts,
                                            uint64_t part)
{
    struct prudence_hash_node *last = NULL;

    while (is_node(*link) && hash_index(prudence_hash_node_(*link)->hash, parts->order) == part) {
        last = prudence_hash_node_(*link);
        *link = load_relaxed(&last->next);
    }
    return last;
}

/*
 * Sets each new bucket to the first node of the part, or to an end. The buckets are locked, so that
 * no writer changes a chain that is not cut yet. Readers that find them harmlessly run on into the
 * following parts.
 */
static void set_parts(const struct parts *parts, uintptr_t link)
{
    for (uint64_t part = parts->first; part < parts->end; part++) {
        uintptr_t first = link;
        bool empty = !pass_part(&link, parts, part);

        if (empty && part + 1 < parts->end)
            first = end_behind(parts, part);
        store_release(&parts->buckets[part], first | HASH_LOCKED);
    }
}

/* Cuts the chain after each part except the last. Readers that meet such an end find the new
 * buckets set. */
static void cut_parts(const struct parts *parts, uintptr_t link)
{
    for (uint64_t part = parts->first; part < parts->end; part++) {
        struct prudence_hash_node *last = pass_part(&link, parts, part);

        if (last && part + 1 < parts->end)
            store_release(&last->next, end_behind(parts, part));
        hash_bucket_unlock(&parts->buckets[part],
                           hash_link_of(load_relaxed(&parts->buckets[part])));
    }
}

static void split(uintptr_t *bucket, const struct parts *parts, bool stepping)
{
    uintptr_t link = lock_first_of(bucket, stepping);

    if (link & HASH_MOVED)
        return;
    set_parts(parts, link);
    cut_parts(parts, link);
    hash_bucket_unlock(bucket, link | HASH_MOVED);
}

/* -------------------------------------------------------------------------------------- joining */

/* Returns the place of the link that ends the chain. */
static uintptr_t *last_link(uintptr_t *link)
{
    while (is_node(load_relaxed(link)))
        link = &prudence_hash_node_(load_relaxed(link))->next;
    return link;
}

/*
 * Joins the parts, whose buckets are locked, to one chain: links the last node of each to the first
 * of the next. The end of the last part stays. It says for how many buckets the group was cut from
 * the next one, which readers with a still smaller array must know. Returns the first link.
 */
static uintptr_t join_parts(const struct parts *parts)
{
    uintptr_t first, last = 0, *end = &first;

    for (uint64_t part = parts->first; part < parts->end; part++) {
        last = hash_link_of(load_relaxed(&parts->buckets[part]));
        if (is_node(last)) {
            store_release(end, last);
            end = last_link(end);
            last = load_relaxed(end);
        }
    }
    store_release(end, last);
    return first;
}

static void hash_move_join(uintptr_t *bucket, const struct parts *parts, bool stepping)
{
    if (lock_first_of(&parts->buckets[parts->first], stepping) & HASH_MOVED)
        return; /* the group was moved already */
    for (uint64_t part = parts->first + 1; part < parts->end; part++)
        hash_bucket_lock(&parts->buckets[part]);
    store_release(bucket, join_parts(parts));
    for (uint64_t part = parts->first; part < parts->end; part++)
        hash_bucket_unlock(&parts->buckets[part],
                           hash_link_of(load_relaxed(&parts->buckets[part])) | HASH_MOVED);
}

void hash_move(uintptr_t from, uintptr_t to, uint64_t group, bool stepping)
{
    bool grows = view_order(from) < view_order(to);
    struct parts parts = grows ? parts_of(to, from, group) : parts_of(from, to, group);

    if (grows)
        split(&view_words(from)[group], &parts, stepping);
    else
        hash_move_join(&view_words(to)[group], &parts, stepping);
}
