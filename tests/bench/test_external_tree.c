/* SPDX-License-Identifier: MIT */
/* The search tree of the benchmark: it finds what was inserted and not removed, in one thread and with several writers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>

#include "external_tree.h"

#define KEYS    512
#define STEPS   40000
#define WRITERS 3
#define FEW     4      /* keys, so that writers meet */
#define ROUNDS  150000 /* of each of them */

static struct tree tree;

/* Memory of the nodes; those that are unlinked are kept, so that a writer that still looks at one is no use after free. */
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

static uint64_t next(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *random >> 33;
}

/* How many leaves are below; the keys of each side are on that side. */
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

/* All but those of struct tree itself. */
static void free_nodes(struct tree_node *node)
{
    if (node->child[0]) {
        free_nodes(node->child[0]);
        free_nodes(node->child[1]);
    }
    if ((char *)node < (char *)&tree || (char *)node >= (char *)(&tree + 1))
        free(node);
}

static void test_as_a_set(void **state)
{
    static bool model[KEYS];
    struct tree_node *gone[2];
    uint64_t random = 1;
    unsigned count = 0;

    (void)state;
    tree_init(&tree);
    for (unsigned step = 0; step < STEPS; step++) {
        const uint64_t key = next(&random) % KEYS;

        assert_int_equal(has(key), model[key]);
        if (next(&random) % 2) {
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
    struct tree_node *gone; /* linked by their heads, which nobody reads */
    int balance[FEW];       /* insertions less removals that it made */
};

static void *write_some(void *argument)
{
    struct writer *writer = argument;
    struct tree_node *gone[2];

    for (unsigned step = 0; step < ROUNDS; step++) {
        const uint64_t key = next(&writer->random) % FEW;

        if (next(&writer->random) % 2) {
            writer->balance[key] += insert(key);
        } else if (tree_remove(&tree, key, gone)) {
            writer->balance[key]--;
            /* In `head`, which nobody reads: others may still look at the rest. */
            *(struct tree_node **)gone[0]->head = gone[1];
            *(struct tree_node **)gone[1]->head = writer->gone;
            writer->gone = gone[0];
        }
    }
    return NULL;
}

/* Each key was inserted once more than it was removed, or as often; and that is what the tree says. */
static void test_several_writers(void **state)
{
    static struct writer writer[WRITERS];

    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_a_set),
        cmocka_unit_test(test_several_writers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
