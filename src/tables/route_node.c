/* SPDX-License-Identifier: MIT */
/* Sizes and memory of nodes of the trie of routes, and copies of their words (route_node.h). */
#include "tables/route_node.h"

#include <prudence/prudence.h>

#include "tables/routes.h"

/*
 * Sizes for IPv4, and for IPv6 with the path. A lookup that skips levels finds each node in lines
 * that are not in the processor's caches, so most nodes of IPv6 have one line. The largest size has
 * room for ROUTE_NODE_WORDS.
 */
const unsigned short route_sizes_near[ROUTE_NODE_SIZES] = {32,  48,  64,  96,  128, 192,
                                                           256, 384, 512, 768, 1040};
const unsigned short route_sizes_far[ROUTE_NODE_SIZES] = {64, 128, 192, 256, 384, 512, 768, 1088};

void route_node_first(struct route_node *node, uint64_t above)
{
    node->prefixes = ROUTE_BIT(ROUTE_ABOVE);
    node->children = 0;
    node->words[0] = above;
}

void route_node_copy(struct route_node *node, const struct route_node *from)
{
    copy_unseen(node, from, sizeof *node + route_node_words(from) * sizeof node->words[0]);
}

/* Copies the words of `from`, with one more at `at`. `from` may be `node`. */
static void words_with(struct route_node *node, const struct route_node *from, unsigned at,
                       uint64_t word)
{
    const unsigned words = route_node_words(from);

    move_unseen(&node->words[at + 1], &from->words[at], (words - at) * sizeof word);
    move_unseen(node->words, from->words, at * sizeof word);
    node->words[at] = word;
}

static void words_without(struct route_node *node, const struct route_node *from, unsigned at)
{
    const unsigned words = route_node_words(from);

    copy_unseen(node->words, from->words, at * sizeof node->words[0]);
    copy_unseen(&node->words[at], &from->words[at + 1], (words - at - 1) * sizeof node->words[0]);
}

void route_node_with_prefix(struct route_node *node, const struct route_node *from, unsigned bit,
                            uint64_t word)
{
    words_with(node, from, route_value_at(from, bit), word);
    node->prefixes = from->prefixes | ROUTE_BIT(bit);
    node->children = from->children;
}

void route_node_with_child(struct route_node *node, const struct route_node *from, unsigned slot,
                           uint64_t edge)
{
    words_with(node, from, route_child_at(from, slot), edge);
    node->prefixes = from->prefixes;
    node->children = from->children | ROUTE_BIT(slot);
}

void route_node_without_prefix(struct route_node *node, const struct route_node *from, unsigned bit)
{
    words_without(node, from, route_value_at(from, bit));
    node->prefixes = from->prefixes & ~ROUTE_BIT(bit);
    node->children = from->children;
}

void route_node_without_child(struct route_node *node, const struct route_node *from, unsigned slot)
{
    words_without(node, from, route_child_at(from, slot));
    node->prefixes = from->prefixes;
    node->children = from->children & ~ROUTE_BIT(slot);
}

/* --------------------------------------------------------------------------------------- memory */

struct route_node *route_node_make(struct route_table *table, unsigned words)
{
    const unsigned size = route_node_size(table, words);
    struct prudence_cache *cache =
        own_cache(&table->caches[size], &table->owner, table->sizes[size],
                  table->node_front ? route_sizes_far[0] : 0);
    char *memory = cache ? prudence_cache_alloc(cache) : NULL;

    return memory ? (struct route_node *)(void *)(memory + table->node_front) : NULL;
}

static void *memory_of(const struct route_table *table, struct route_node *node)
{
    return (char *)node - table->node_front;
}

void route_node_free(const struct route_table *table, struct route_node *node, unsigned words)
{
    prudence_cache_free(table->caches[route_node_size(table, words)], memory_of(table, node));
}

void route_node_defer(const struct route_table *table, struct route_node *node)
{
    prudence_cache_free_deferred(table->caches[route_node_size(table, route_node_words(node))],
                                 memory_of(table, node));
}

size_t route_node_memory(const struct route_table *table, const struct route_node *node)
{
    return table->sizes[route_node_size(table, route_node_words(node))];
}
