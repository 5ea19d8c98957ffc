/* SPDX-License-Identifier: MIT */
/*
 * Searches and updates of one tree that all writers share; half of the updates insert, half remove.
 * A part of loops.h. Keys are uniform. Removed nodes are retired outside of the section, as in
 * every loop here.
 */
#ifndef BENCH_LOOP_TREE_H
#define BENCH_LOOP_TREE_H

#include "external_tree.h"

/* Marsaglia's xorshift, multiplied; never returns 0. */
TEMPLATE uint64_t next_random(struct worker *worker)
{
    uint64_t x = worker->random;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    worker->random = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

/* Returns a number below `bound`, from 32 bits. */
TEMPLATE uint64_t share_of(uint64_t bits, uint64_t bound)
{
    return ((bits & UINT32_MAX) * bound) >> 32;
}

TEMPLATE void tree_search(struct worker *worker, const struct operations *op, uint64_t key)
{
    uint64_t found;

    op->read_lock();
    found = tree_find(worker->run->tree, key)->key;
    op->read_unlock();
    worker->errors += found >= worker->run->config.keys && found != TREE_END;
}

/* `fresh` holds two nodes, which stay for the next insertion if the key exists. Returns false if
 * there is no memory. */
TEMPLATE bool tree_add(struct worker *worker, const struct operations *op,
                       struct tree_node *fresh[2], uint64_t key)
{
    bool added;

    for (unsigned i = 0; i < 2; i++) {
        if (!fresh[i] && !(fresh[i] = allocate_touched(worker, op, worker->pool)))
            return false;
    }
    op->read_lock();
    added = tree_insert(worker->run->tree, key, fresh);
    op->read_unlock();
    if (added)
        fresh[0] = fresh[1] = NULL;
    return true;
}

/* Returns how many objects it retired. */
TEMPLATE unsigned tree_take(struct worker *worker, const struct operations *op, uint64_t key)
{
    struct tree_node *gone[2];
    bool removed;

    op->read_lock();
    removed = tree_remove(worker->run->tree, key, gone);
    op->read_unlock();
    if (!removed)
        return 0;
    op->retire(worker->pool, gone[0]);
    op->retire(worker->pool, gone[1]);
    return 2;
}

TEMPLATE bool slice_of_tree(struct worker *worker, const struct operations *op,
                            struct tree_node *fresh[2])
{
    const struct config *config = &worker->run->config;
    unsigned retired = 0;

    for (unsigned i = 0; i < SLICE; i++) {
        const uint64_t draw = next_random(worker), key = share_of(draw >> 32, config->keys);
        const uint64_t choice = share_of(draw, 200);

        if (choice >= 2 * config->updates)
            tree_search(worker, op, key);
        else if (choice % 2)
            retired += tree_take(worker, op, key);
        else if (!tree_add(worker, op, fresh, key))
            return false;
    }
    worker_did(worker, SLICE, retired);
    return true;
}

TEMPLATE void loop_tree(struct worker *worker, const struct operations *op)
{
    struct tree_node *fresh[2] = {NULL, NULL};
    bool memory = true;

    if (!worker->random)
        worker->random = worker->index + 1;
    while (memory && worker_goes_on(worker))
        memory = slice_of_tree(worker, op, fresh);
    for (unsigned i = 0; i < 2; i++) {
        if (fresh[i])
            op->discard(worker->pool, fresh[i]);
    }
}

#endif /* BENCH_LOOP_TREE_H */
