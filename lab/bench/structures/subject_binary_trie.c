/* SPDX-License-Identifier: MIT */
/* A binary trie, one bit of an address at each node, under a reader-writer lock. */
#include <pthread.h>
#include <stdlib.h>

#include "routes_input.h"

struct trie_node {
    struct trie_node *child[2];
    uint32_t hop; /* 0: no prefix ends here */
};

static struct trie_node root;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static inline void read_begin(void)
{
    pthread_rwlock_rdlock(&lock);
}

static inline void read_end(void)
{
    pthread_rwlock_unlock(&lock);
}

static inline uint32_t hop_of(uint32_t address)
{
    uint32_t hop = 0;

    for (const struct trie_node *node = &root; node;
         node = node->child[address >> 31], address <<= 1)
        if (node->hop)
            hop = node->hop;
    return hop;
}

static void route_add(const struct bench_route *route, uint32_t hop)
{
    struct trie_node *node = &root;

    pthread_rwlock_wrlock(&lock);
    for (unsigned bit = 0; bit < route->length; bit++) {
        struct trie_node **child = &node->child[route->address >> (31 - bit) & 1];

        if (!*child)
            *child = calloc(1, sizeof **child);
        node = *child;
    }
    node->hop = hop;
    pthread_rwlock_unlock(&lock);
}

/* Keeps the nodes, which favours this subject. */
static void route_remove(const struct bench_route *route)
{
    route_add(route, 0);
}

#include "routes_family.h"

const struct subject subject_binary_trie = {
    "binary-trie", "longest-prefix match: a node for each bit, a reader-writer lock",
    .start = bench_prepare, .fill = fill, .run = run};
