/* SPDX-License-Identifier: MIT */
/* The search tree of the benchmark finds the keys that were inserted and not removed, with one
 * thread and with several writers. */

#include <pthread.h>
#include <stdlib.h>

#include "external_tree.h"
#include "support/random.h"
#include "support/suite.h"

#define KEYS    512
#define STEPS   40000
#define WRITERS 3
#define FEW     4      /* keys, so that writers meet */
#define ROUNDS  150000 /* of each writer */

static struct tree tree;

/* Allocates a node. With several writers, unlinked nodes are kept until the end, because another
 * writer may still read them. */
static void *nodes(void)
{
    void *node = malloc(sizeof(struct tree_node));

    assert_non_null(node);
    return node;
}

static bool insert(uint64_t key)
{
    struct tree_node *fresh[2] = {nodes(), nodes()};

    if (tree_insert(&tree, key, fresh))
        return true;
    free(fresh[0]);
    free(fresh[1]);
    return false;
}

static bool has(uint64_t key)
{
    return tree_find(&tree, key)->key == key;
}

/* Returns the number of leaves below, and checks that each key is on the right side. */
static unsigned check(const struct tree_node *node, uint64_t least, uint64_t bound)
{
    if (!node->child[0]) {
        assert_true(node->key == TREE_END || (node->key >= least && node->key < bound));
        return node->key != TREE_END;
    }
    assert_int_equal(node->edge[0] % 2 + node->edge[1] % 2, 0);
    return check(node->child[0], least, node->key) +
           check(node->child[1], node->key > least ? node->key : least, bound);
}

/* Frees all nodes except the ones in struct tree. */
static void free_nodes(struct tree_node *node)
{
    if (node->child[0]) {
        free_nodes(node->child[0]);
        free_nodes(node->child[1]);
    }
    if ((char *)node < (char *)&tree || (char *)node >= (char *)(&tree + 1))
        free(node);
}

TEST(test_as_a_set)
{
    static bool model[KEYS];
    struct tree_node *gone[2];
    uint64_t random = 1;
    unsigned count = 0;

    tree_init(&tree);
    for (unsigned step = 0; step < STEPS; step++) {
        const uint64_t key = random_next(&random) % KEYS;

        assert_int_equal(has(key), model[key]);
        if (random_next(&random) % 2) {
            assert_int_equal(insert(key), !model[key]);
            count += !model[key];
            model[key] = true;
        } else {
            const bool removed = tree_remove(&tree, key, gone);

            assert_int_equal(removed, model[key]);
            count -= model[key];
            model[key] = false;
            if (removed) {
                assert_int_equal(gone[0]->key, key);
                assert_ptr_not_equal(gone[0], gone[1]);
                free(gone[0]);
                free(gone[1]);
            }
        }
        if (step % 1000 == 0)
            assert_int_equal(check(&tree.root, 0, TREE_END), count);
    }
    free_nodes(&tree.root);
}

struct writer {
    pthread_t thread;
    uint64_t random;
    struct tree_node *gone; /* removed nodes, linked through `head` */
    int balance[FEW];       /* this writer's insertions minus removals */
};

static void *write_some(void *argument)
{
    struct writer *writer = argument;
    struct tree_node *gone[2];

    for (unsigned step = 0; step < ROUNDS; step++) {
        const uint64_t key = random_next(&writer->random) % FEW;

        if (random_next(&writer->random) % 2) {
            writer->balance[key] += insert(key);
        } else if (tree_remove(&tree, key, gone)) {
            writer->balance[key]--;
            /* No writer reads `head`. Other writers may still read the rest of the node. */
            *(struct tree_node **)gone[0]->head = gone[1];
            *(struct tree_node **)gone[1]->head = writer->gone;
            writer->gone = gone[0];
        }
    }
    return NULL;
}

/* The writers inserted each key as often as they removed it, or once more. The tree says which. */
TEST(test_several_writers)
{
    static struct writer writer[WRITERS];

    tree_init(&tree);
    for (unsigned i = 0; i < WRITERS; i++) {
        writer[i].random = i;
        assert_int_equal(pthread_create(&writer[i].thread, NULL, write_some, &writer[i]), 0);
    }
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(writer[i].thread, NULL);
    for (uint64_t key = 0; key < FEW; key++) {
        int balance = 0;

        for (unsigned i = 0; i < WRITERS; i++)
            balance += writer[i].balance[key];
        assert_int_equal(balance, has(key));
    }
    check(&tree.root, 0, TREE_END);
    free_nodes(&tree.root);
    for (unsigned i = 0; i < WRITERS; i++) {
        for (struct tree_node *node = writer[i].gone, *other; node; node = other) {
            other = *(struct tree_node **)node->head;
            free(node);
        }
    }
}

SUITE()
