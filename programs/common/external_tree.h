/* SPDX-License-Identifier: MIT */
/*
 * An external binary search tree that readers search without locks: keys are in the leaves, inner
 * nodes only route. Each inner node has a version for each of its two edges, which is odd while a
 * writer holds that edge. A writer searches without locks, and then takes an edge only if its
 * version is unchanged since the search, so the nodes that it found are still linked. The algorithm
 * is BST-TK of David, Guerraoui and Trigonakis (Asynchronized Concurrency, 2015), which "Are Your
 * Epochs Too Epic?" (2024) measures, too.
 *
 * The callers supply the memory: an insertion publishes two nodes, a removal unlinks two, which may
 * be freed after a grace period. Every function is called inside a read-side section. A writer that
 * does not get an edge searches again; no thread waits for a lock.
 *
 * Invariant: an unlinked inner node keeps both edges held for ever, so no writer can change a node
 * that no thread finds.
 */
#ifndef BENCH_EXTERNAL_TREE_H
#define BENCH_EXTERNAL_TREE_H

#include <stdbool.h>
#include <stdint.h>

#define TREE_END UINT64_MAX /* greater than every key */

struct tree_node {
    char head[16]; /* room for a callback's head, which the peers write at retirement */
    uint64_t key;
    struct tree_node
        *child[2];    /* keys below `key`, and all others; NULL in a leaf, for its whole life */
    uint32_t edge[2]; /* version of each edge; odd while held */
};

struct tree {
    struct tree_node root, second; /* every leaf with a key has a parent and a grandparent */
    struct tree_node end[3];
};

/* Place at which a search for a key ended. */
struct tree_place {
    struct tree_node *grand, *parent, *leaf;
    unsigned grand_side, side;
    uint32_t grand_version, version; /* of those edges, each read before the child */
};

static inline void tree_init(struct tree *tree)
{
    *tree = (struct tree){.root = {.key = TREE_END}, .second = {.key = TREE_END}};
    for (unsigned i = 0; i < 3; i++)
        tree->end[i].key = TREE_END;
    tree->root.child[0] = &tree->second;
    tree->root.child[1] = &tree->end[0];
    tree->second.child[0] = &tree->end[1];
    tree->second.child[1] = &tree->end[2];
}

/* Returns a child. Acquire, so that a thread that sees a node sees its key and its children, as
 * their writer stored them. */
static inline struct tree_node *tree_child(struct tree_node *node, unsigned side)
{
    return __atomic_load_n(&node->child[side], __ATOMIC_ACQUIRE);
}

static inline struct tree_place tree_walk(struct tree *tree, uint64_t key)
{
    struct tree_place at = {.leaf = &tree->root};

    while (tree_child(at.leaf, 0)) {
        at.grand = at.parent;
        at.grand_side = at.side;
        at.grand_version = at.version;
        at.parent = at.leaf;
        at.side = key >= at.parent->key;
        /* Acquire, so that the version is older than the child, which is read next. */
        at.version = __atomic_load_n(&at.parent->edge[at.side], __ATOMIC_ACQUIRE);
        at.leaf = tree_child(at.parent, at.side);
    }
    return at;
}

/* Returns the leaf at which a search for `key` ends; the caller compares the key. */
static inline struct tree_node *tree_find(struct tree *tree, uint64_t key)
{
    struct tree_node *node = &tree->root, *child;

    while ((child = tree_child(node, key >= node->key)))
        node = child;
    return node;
}

/* Takes an edge. Returns false if it is held, or has changed since `version` was read. Acquire,
 * so that the last holder's stores are visible. */
static inline bool tree_hold(uint32_t *edge, uint32_t version)
{
    return !(version & 1) && __atomic_compare_exchange_n(edge, &version, version + 1, false,
                                                         __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Stores `version`: the value before tree_hold() if nothing was changed, otherwise two more.
 * Release: see tree_hold. */
static inline void tree_let_go(uint32_t *edge, uint32_t version)
{
    __atomic_store_n(edge, version, __ATOMIC_RELEASE);
}

static inline void tree_fill(struct tree_node *leaf, struct tree_node *inner, uint64_t key,
                             struct tree_node *sibling)
{
    const bool right = key > sibling->key;

    leaf->key = key;
    leaf->child[0] = leaf->child[1] = NULL;
    inner->key = right ? key : sibling->key;
    inner->child[right] = leaf;
    inner->child[!right] = sibling;
    inner->edge[0] = inner->edge[1] = 0;
}

/* Publishes the two nodes of `fresh`. Returns false if the key exists; both then stay the
 * caller's. */
static inline bool tree_insert(struct tree *tree, uint64_t key, struct tree_node *const fresh[2])
{
    for (;;) {
        const struct tree_place at = tree_walk(tree, key);
        uint32_t *edge = &at.parent->edge[at.side];

        if (at.leaf->key == key)
            return false;
        if (!tree_hold(edge, at.version))
            continue;
        tree_fill(fresh[0], fresh[1], key, at.leaf);
        /* Release, so that a reader that sees the inner node sees both nodes completely. */
        __atomic_store_n(&at.parent->child[at.side], fresh[1], __ATOMIC_RELEASE);
        tree_let_go(edge, at.version + 2);
        return true;
    }
}

/* Holds both edges of a node that will be removed. */
static inline bool tree_hold_both(const struct tree_place *at)
{
    uint32_t *edge = &at->parent->edge[at->side], *other = &at->parent->edge[!at->side];

    if (!tree_hold(edge, at->version))
        return false;
    if (tree_hold(other, __atomic_load_n(other, __ATOMIC_RELAXED)))
        return true;
    tree_let_go(edge, at->version);
    return false;
}

/* Unlinks the leaf and its parent into `gone`; both may be freed after a grace period. Returns
 * false if the key is absent. */
static inline bool tree_remove(struct tree *tree, uint64_t key, struct tree_node *gone[2])
{
    for (;;) {
        const struct tree_place at = tree_walk(tree, key);
        uint32_t *edge;

        if (at.leaf->key != key)
            return false;
        edge = &at.grand->edge[at.grand_side];
        if (!tree_hold(edge, at.grand_version))
            continue;
        if (!tree_hold_both(&at)) {
            tree_let_go(edge, at.grand_version);
            continue;
        }
        __atomic_store_n(&at.grand->child[at.grand_side], at.parent->child[!at.side],
                         __ATOMIC_RELEASE);
        tree_let_go(edge, at.grand_version + 2);
        gone[0] = at.leaf;
        gone[1] = at.parent;
        return true;
    }
}

#endif /* BENCH_EXTERNAL_TREE_H */
