/* SPDX-License-Identifier: MIT */
/*
 * False sharing, which the allocator causes (actively) or does not repair (passively); both after
 * Berger, McKinley, Blumofe and Wilson, "Hoard", ASPLOS 2000.
 *
 *   cache-thrash    each thread allocates 8 bytes, writes them often, frees them
 *   cache-scratch   the same, but the first block of each thread comes from the main thread
 */
#include "load.h"

#define WRITES 200

static void write_often(const struct block *block)
{
    volatile unsigned char *byte = (volatile unsigned char *)block->at + block->size - 1;
    unsigned char last = *byte; /* of the mark */

    for (unsigned i = 0; i < WRITES; i++)
        *byte = (unsigned char)(*byte + 1);
    *byte = last;
}

/* `whatever` has a block for each thread, or is NULL. */
static void sharing_work(struct member *member)
{
    uint64_t goal = load_scaled(member->load, 500000);
    struct block *given = member->whatever;

    if (given) {
        write_often(&given[member->index]);
        block_end(&given[member->index]);
    }
    while (member->blocks < goal) {
        struct block block = block_new(member, BLOCK_LEAST);

        write_often(&block);
        block_end(&block);
    }
}

static uint64_t cache_scratch(const struct load *load)
{
    struct block given[MAX_THREADS];

    for (unsigned i = 0; i < load->threads; i++)
        given[i] = block_make(BLOCK_LEAST);
    return load->threads + team_run(load, load->threads, sharing_work, given);
}

const struct pattern pattern_cache_thrash = {
    "cache-thrash", "each thread allocates 8 bytes, writes them 200 times, frees them", 2,
    MAX_THREADS, .work = sharing_work};
const struct pattern pattern_cache_scratch = {"cache-scratch",
                                              "the same, with first blocks from one thread", 2,
                                              MAX_THREADS, .run = cache_scratch};
