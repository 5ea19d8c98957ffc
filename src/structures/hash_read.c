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

        link = load_acquire(&view_words(view)[hash_index(hash, view_order(view))]);
        if (!hash_link_of(link) && (view = load_acquire(&table->from)))
            link = load_acquire(&view_words(view)[hash_index(hash, view_order(view))]);
        *order = view_order(view);
    } while (!hash_link_of(link));
    return hash_link_of(link);
}

/* An end that is not of the chain's array was put there after the table had got another one: it is found next time. */
struct prudence_hash_node *prudence_hash_lookup_slow(const struct prudence_hash *table,
                                                     uint64_t hash, prudence_hash_match match,
                                                     const void *key)
{
    const uint64_t spread = prudence_hash_spread_(hash);
    struct prudence_hash_node *node;
    uintptr_t link;
    unsigned order;

    do {
        link = chain_of(hash_of(table), spread, &order);
        for (; is_node(link); link = load_acquire(&node->next)) {
            node = found_node(link);
            if (node->hash == spread && match(node, key))
                return node;
        }
    } while (!is_end_of(link, order));
    return NULL;
}

/*
 * Walks go through the hashes in their order, chain by chain. All below `from` have been passed, so a walk finds its way
 * whatever happens to arrays and chains: it takes the chain to which `from` belongs now, and passes over what stands before.
 */
static void begin_chain(struct prudence_hash_walk *walk)
{
    walk->link = chain_of(hash_of(walk->table), walk->from, &walk->order);
    walk->node = NULL;
}

/*
 * At the end of a chain all of the last node's bucket has been passed: of the walk's array, or, if the end is one of more
 * buckets, of an array with so many. In the latter case, if no node was found, what was cut off may begin right here.
 */
static void end_chain(struct prudence_hash_walk *walk)
{
    bool cut = !is_end_of(walk->link, walk->order);
    unsigned order = cut ? (unsigned)(walk->link / 8 - 1) : walk->order;
    uint64_t last = walk->node ? walk->node->hash : walk->from;

    walk->link = 0;
    if (cut && !walk->node)
        return;
    walk->from = hash_first_of(hash_index(last, order) + 1, order);
    walk->over = !walk->from;
}

struct prudence_hash_node *prudence_hash_next(struct prudence_hash_walk *walk)
{
    while (!walk->over) {
        if (!walk->link)
            begin_chain(walk);
        while (is_node(walk->link)) {
            struct prudence_hash_node *node = found_node(walk->link);

            walk->link = load_acquire(&node->next);
            if (node->hash >= walk->from) {
                walk->node = node;
                return node;
            }
        }
        end_chain(walk);
    }
    return NULL;
}

struct prudence_hash_node *prudence_hash_first(struct prudence_hash_walk *walk,
                                               const struct prudence_hash *table)
{
    *walk = (struct prudence_hash_walk){.table = table};
    return prudence_hash_next(walk);
}
