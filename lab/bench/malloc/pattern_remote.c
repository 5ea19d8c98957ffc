/* SPDX-License-Identifier: MIT */
/*
 * Blocks that another thread frees.
 *
 *   asymmetric   half of the threads only allocate, half only free (after Lever and Boreham,
 *                "malloc() Performance in a Multithreaded Linux Environment", 2000)
 *   free-only    threads with a working set of their own give replaced blocks to one thread that
 *                frees in bursts and never allocates, as a reclaimer does
 */
#include "load.h"
#include "queue.h"

#define WORKING_SET 8192 /* blocks */

static void free_all(struct queue *queue)
{
    struct batch batch;

    while (queue_get(queue, &batch)) {
        for (unsigned i = 0; i < batch.count; i++)
            block_end(&batch.block[i]);
    }
}

static void give(struct queue *queue, struct batch *batch, struct block block)
{
    batch->block[batch->count++] = block;
    if (batch->count == BATCH)
        queue_put(queue, batch);
}

static void give_last(struct queue *queue, struct batch *batch)
{
    if (batch->count)
        queue_put(queue, batch);
    queue_leave(queue);
}

static void asymmetric_work(struct member *member)
{
    uint64_t goal = load_scaled(member->load, 5000000);
    struct queue *queue = member->whatever;
    struct batch batch = {.count = 0};

    if (member->index % 2) {
        free_all(queue);
        return;
    }
    while (member->blocks < goal)
        give(queue, &batch, block_new(member, random_size(&member->random, 4, 9)));
    give_last(queue, &batch);
}

static uint64_t asymmetric(const struct load *load)
{
    static struct queue queue;

    queue_init(&queue, (load->threads + 1) / 2);
    return team_run(load, load->threads, asymmetric_work, &queue);
}

static void replace_all(struct member *member, struct block *set, struct batch *batch)
{
    for (unsigned i = 0; i < WORKING_SET; i++) {
        if (set[i].at)
            give(member->whatever, batch, set[i]);
        set[i] = block_new(member, random_size(&member->random, 5, 10));
    }
}

/* Allocates and frees in its own set between the bursts. */
static void replace_some(struct member *member, struct block *set)
{
    for (unsigned i = 0; i < WORKING_SET; i++) {
        struct block *any = &set[random_below(&member->random, WORKING_SET)];

        block_end(any);
        *any = block_new(member, random_size(&member->random, 5, 10));
    }
}

static void free_only_work(struct member *member)
{
    uint64_t goal = load_scaled(member->load, 4000000);
    struct queue *queue = member->whatever;
    struct batch batch = {.count = 0};
    struct block *set;

    if (member->index == 0) {
        free_all(queue);
        return;
    }
    set = own_memory(WORKING_SET * sizeof *set);
    while (member->blocks < goal) {
        replace_all(member, set, &batch);
        replace_some(member, set);
    }
    for (unsigned i = 0; i < WORKING_SET; i++)
        give(queue, &batch, set[i]);
    give_last(queue, &batch);
    own_memory_end(set, WORKING_SET * sizeof *set);
}

static uint64_t free_only(const struct load *load)
{
    static struct queue queue;

    queue_init(&queue, load->threads - 1);
    return team_run(load, load->threads, free_only_work, &queue);
}

const struct pattern pattern_asymmetric = {"asymmetric",
                                           "half of the threads only allocate, half only free", 2,
                                           MAX_THREADS, .run = asymmetric};
const struct pattern pattern_free_only = {
    "free-only", "one thread frees, in bursts, the blocks that the others have replaced", 2,
    MAX_THREADS, .run = free_only};
