/* SPDX-License-Identifier: MIT */
/*
 * One search tree, which all writers search and update: the load of "Are Your Epochs Too Epic?"
 * (2024), whose finding is that frees in batches make allocators slow. Half of the keys
 * are in it before the run.
 */
#include "scenario.h"

#include <stdlib.h>

#include "external_tree.h"

static enum loop writer(const struct config *config, unsigned index)
{
    (void)config, (void)index;
    return LOOP_TREE;
}

static void insert(struct run *run, uint64_t key)
{
    const struct operations *op = run->subject->family->operations;
    struct tree_node *fresh[2];

    for (unsigned i = 0; i < 2; i++) {
        if (!(fresh[i] = op->allocate(run->pool)))
            abort();
    }
    tree_insert(run->tree, key, fresh);
}

static uint64_t reversed(uint64_t number, unsigned bits)
{
    uint64_t found = 0;

    for (unsigned i = 0; i < bits; i++)
        found |= (number >> i & 1) << (bits - 1 - i);
    return found;
}

/* Runs in main, before other threads exist. Inserts every second key, in an order that makes the
 * tree as low as possible, so that all runs begin alike. */
static void prepare(struct run *run)
{
    unsigned bits = 0;

    run->tree = malloc(sizeof *run->tree);
    if (!run->tree)
        abort();
    tree_init(run->tree);
    while (UINT64_C(2) << bits < run->config.keys)
        bits++;
    for (uint64_t i = 0; i < UINT64_C(1) << bits; i++) {
        uint64_t key = 2 * reversed(i, bits) + 1;

        if (key < run->config.keys)
            insert(run, key);
    }
}

const struct scenario scenario_tree = {
    .name = "tree",
    .summary = "search and update one search tree (Are Your Epochs Too Epic?)",
    .subjects = "prudence,prudence-heap,classic,urcu+*,ck-epoch+*",
    .options = "uk",
    .pair = "a search, an insertion or a removal",
    .deferring = true,
    .samples = true,
    .warms_up = true,
    .min_size = sizeof(struct tree_node),
    .defaults = {.size = 64, .threads = 2, .seconds = 1, .updates = 100, .keys = 100000},
    .writer = writer,
    .reader = LOOP_READ,
    .counted = COUNTS(LOOP_TREE),
    .charged = COUNTS(LOOP_TREE) | HELPERS,
    .prepare = prepare,
};
