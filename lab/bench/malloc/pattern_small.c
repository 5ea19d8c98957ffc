/* SPDX-License-Identifier: MIT */
/*
 * Small blocks, without exchange between threads.
 *
 *   lifo, fifo      the two orders of freeing that MicroQuill's SmartHeap tests made common
 *   random          a working set whose members are replaced in no order: fragmentation
 *   one-size, mix   the loops of the C library's own malloc benchmark: allocate many blocks, then
 *                   free them all, in one thread; blocks of one size, and of all small ones
 */
#include "load.h"

#include <stdbool.h>

#define DEPTH       4096  /* of a stack, and length of a queue */
#define WORKING_SET 65536 /* blocks */

static void lifo_work(struct member *member)
{
    uint64_t goal = load_scaled(member->load, 5000000);
    struct block *stack = own_memory(DEPTH * sizeof *stack);
    unsigned depth = 0;

    while (member->blocks < goal) {
        uint64_t high = depth + random_below(&member->random, DEPTH - depth);
        uint64_t low = random_below(&member->random, high + 1);

        while (depth < high)
            stack[depth++] = block_new(member, random_size(&member->random, 4, 9));
        while (depth > low)
            block_end(&stack[--depth]);
    }
    while (depth)
        block_end(&stack[--depth]);
    own_memory_end(stack, DEPTH * sizeof *stack);
}

static void fifo_work(struct member *member)
{
    uint64_t goal = load_scaled(member->load, 7000000);
    struct block *queue = own_memory(DEPTH * sizeof *queue);

    while (member->blocks < goal) {
        struct block *oldest = &queue[member->blocks % DEPTH];

        block_end(oldest);
        *oldest = block_new(member, random_size(&member->random, 4, 9));
    }
    for (unsigned i = 0; i < DEPTH; i++)
        block_end(&queue[i]);
    own_memory_end(queue, DEPTH * sizeof *queue);
}

static void random_work(struct member *member)
{
    uint64_t goal = load_scaled(member->load, 4000000);
    struct block *set = own_memory(WORKING_SET * sizeof *set);

    while (member->blocks < goal) {
        struct block *any = &set[random_below(&member->random, WORKING_SET)];

        block_end(any);
        *any = block_new(member, random_size(&member->random, 4, 10));
    }
    for (unsigned i = 0; i < WORKING_SET; i++)
        block_end(&set[i]);
    own_memory_end(set, WORKING_SET * sizeof *set);
}

static const unsigned counts[] = {25, 100, 400, 1600};
#define COUNTS     (sizeof counts / sizeof *counts)
#define MOST_COUNT 1600

/* Allocates `count` blocks and frees them, youngest first or, in half of the rounds of a mix
 * (size 0), oldest first. */
static void simple_round(struct member *member, struct block *blocks, unsigned count, size_t size)
{
    bool youngest_first = !size && random_below(&member->random, 2);

    for (unsigned i = 0; i < count; i++)
        blocks[i] = block_new(member, size ? size : random_size(&member->random, 3, 12));
    for (unsigned i = 0; i < count; i++)
        block_end(&blocks[youngest_first ? count - 1 - i : i]);
}

static void simple_work(struct member *member, uint64_t goal, size_t size)
{
    struct block *blocks = own_memory(MOST_COUNT * sizeof *blocks);

    for (unsigned i = 0; i < COUNTS; i++) {
        uint64_t part = (i + 1) * goal / COUNTS;

        while (member->blocks < part)
            simple_round(member, blocks, counts[i], size);
    }
    own_memory_end(blocks, MOST_COUNT * sizeof *blocks);
}

static void one_size_work(struct member *member)
{
    simple_work(member, load_scaled(member->load, 16000000), 64);
}

static void mix_work(struct member *member)
{
    simple_work(member, load_scaled(member->load, 6000000), 0);
}

const struct pattern pattern_lifo = {
    "lifo", "stacks of 16 to 511 bytes that grow and shrink by random depths", 1, MAX_THREADS,
    .work = lifo_work};
const struct pattern pattern_fifo = {"fifo", "queues of 4,096 blocks of 16 to 511 bytes", 1,
                                     MAX_THREADS, .work = fifo_work};
const struct pattern pattern_random = {"random",
                                       "65,536 blocks of 16 to 1,023 bytes, any of them replaced",
                                       1, MAX_THREADS, .work = random_work};
const struct pattern pattern_one_size = {
    "one-size", "25 to 1,600 blocks of 64 bytes, then free all; one thread", 1, 1,
    .work = one_size_work};
const struct pattern pattern_mix = {
    "mix", "25 to 1,600 blocks of 8 to 4,095 bytes, then free all; one thread", 1, 1,
    .work = mix_work};
