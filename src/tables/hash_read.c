/* SPDX-License-Identifier: MIT */
/* Readers during a resize, and walks over all objects. hash.h says how chains may change under
 * them, and why this code is enough. */
#include "tables/hash.h"

/*
 * Returns the current chain of a hash, and the order of the array that led there. An array has all
 * buckets while it is `from`. So does a view once `from` is 0 again, because that store came after
 * the buckets.
 */
static uintptr_t hash_read_chain(const struct hash_table *table, uint64_t hash, unsigned *order)
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

/* An end that the chain's array may not have was stored after the table got another array. The next
 * round finds that array. */
struct prudence_hash_node *prudence_hash_lookup_slow(const struct prudence_hash *table,
                                                     uint64_t hash, prudence_hash_match match,
                                                     const void *key)
{
    const uint64_t spread = prudence_hash_spread_(hash);
    struct prudence_hash_node *node;
    uintptr_t link;
    unsigned order;

    do {
        link = hash_read_chain(hash_of(table), spread, &order);
        for (; is_node(link); link = load_acquire(&node->next)) {
            node = found_node(link);
            if (node->hash == spread && match(node, key))
                return node;
        }
    } while (!is_end_of(link, order));
    return NULL;
}

/*
 * Walks go through the hashes in order, chain by chain. All hashes below `from` have been passed,
 * so a walk finds its way however arrays and chains change: it takes the current chain of `from`,
 * and skips the nodes before.
 */
static void begin_chain(struct prudence_hash_walk *walk)
{
    walk->link = hash_read_chain(hash_of(walk->table), walk->from, &walk->order);
    walk->node = NULL;
}

/*
 * At the end of a chain, the walk has passed all hashes in the bucket of the last node. This bucket
 * is one of the walk's array or, if the end is for more buckets, of an array with that number. In
 * the latter case, if no node was found, the part that was cut off may begin right here.
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
