/* SPDX-License-Identifier: MIT */
/* Readers beside a resize, and walks over all objects. What they may meet, and why it is enough: hash.h. */
#include "structures/hash.h"

/*
 * The chain that a hash belongs to now, and the order of the array by which it was found. An array that is `from` has all
 * of its buckets; so has a view when `from` is 0 again, which was stored after them.
 */
static uintptr_t chain_of(const struct hash_table *table, uint64_t hash, unsigned *order)
{
    uintptr_t link;

    do {
        uintptr_t view = load_acquire(&table->public.view);

        link = load_acquire(&view_words(view)[hash & hash_mask(view_order(view))]);
        if (!hash_link_of(link) && (view = load_acquire(&table->from)))
            link = load_acquire(&view_words(view)[hash & hash_mask(view_order(view))]);
        *order = view_order(view);
    } while (!hash_link_of(link));
    return hash_link_of(link);
}

/* An end that is not of the chain's array was put there after the table had got another one: it is found next time. */
struct prudence_hash_node *prudence_hash_lookup_slow(const struct prudence_hash *table,
                                                     uint64_t hash, prudence_hash_match match,
                                                     const void *key)
{
    struct prudence_hash_node *node;
    uintptr_t link;
    unsigned order;

    do {
        link = chain_of(hash_of(table), hash, &order);
        node = prudence_hash_search_(&link, hash, match, key);
    } while (!node && !is_end_of(link, order));
    return node;
}

/*
 * Walks. The hashes are divided into 1 << order segments by their lowest bits, as many as there were buckets at first; that
 * division stays. A segment is walked part by part, in the order of its chain: what is one bucket at a time. In any
 * array, a part is some buckets, one, or a piece of one; in the last case the nodes of other parts are passed over.
 */
static bool is_of_part(const struct prudence_hash_walk *walk, const struct prudence_hash_node *node)
{
    return (node->hash & hash_mask(walk->part_order)) == walk->part;
}

static void begin_part(struct prudence_hash_walk *walk)
{
    walk->link = chain_of(hash_of(walk->table), walk->part, &walk->chain_order);
    walk->node = NULL;
    if (walk->part_order < walk->chain_order)
        walk->part_order = walk->chain_order; /* the first bucket of the part */
}

/* False: this was the last. */
static bool next_part(struct prudence_hash_walk *walk)
{
    walk->link = 0;
    if (hash_next_part(&walk->part, walk->order, walk->part_order))
        return true;
    walk->segment++;
    walk->part = walk->segment;
    walk->part_order = walk->order;
    return walk->segment < UINT64_C(1) << walk->order;
}

/*
 * At the end of a chain. If that was cut for more buckets than the walk knows, what was cut off is still to come: all of the
 * part, or what follows the piece of it that ends with the last node that was passed.
 */
static bool end_chain(struct prudence_hash_walk *walk)
{
    unsigned cut = (unsigned)(walk->link / 8 - 1);

    if (!is_end_of(walk->link, walk->chain_order)) {
        if (!walk->node) {
            walk->link = 0;
            return true;
        }
        if (walk->part_order < cut)
            walk->part_order = cut;
        walk->part = walk->node->hash & hash_mask(walk->part_order);
    }
    return next_part(walk);
}

struct prudence_hash_node *prudence_hash_next(struct prudence_hash_walk *walk)
{
    if (walk->segment >> walk->order)
        return NULL;
    for (;;) {
        if (!walk->link)
            begin_part(walk);
        while (is_node(walk->link)) {
            struct prudence_hash_node *node = prudence_hash_node_(walk->link);

            walk->link = load_acquire(&node->next);
            if (is_of_part(walk, node)) {
                walk->node = node;
                return node;
            }
        }
        if (!end_chain(walk))
            return NULL;
    }
}

struct prudence_hash_node *prudence_hash_first(struct prudence_hash_walk *walk,
                                               const struct prudence_hash *table)
{
    unsigned order = view_order(load_acquire(&table->view));

    *walk = (struct prudence_hash_walk){.table = table, .order = order, .part_order = order};
    return prudence_hash_next(walk);
}
