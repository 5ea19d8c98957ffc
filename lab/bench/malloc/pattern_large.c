/* SPDX-License-Identifier: MIT */
/*
 * Blocks beyond the size classes. The patterns write every page of them, as a program would.
 *
 *   sizes    16 bytes to 16 MB, each power of two equally often, 32 MB alive per thread
 *   large    256 KB to 32 MB, four alive, which come from the system and go back
 *   realloc  vectors that grow by half when they are full, 64 at a time
 */
#include "load.h"

#include <string.h>

#define SIZES_SLOTS 512
#define SIZES_ALIVE ((uint64_t)32 << 20) /* bytes; more than the largest block */

static void end_counted(struct block *block, uint64_t *alive)
{
    if (block->at)
        *alive -= block->size;
    block_end(block);
}

static void sizes_work(struct member *member)
{
    uint64_t goal = load_scaled(member->load, 5000);
    struct block *set = own_memory(SIZES_SLOTS * sizeof *set);
    uint64_t alive = 0;

    while (member->blocks < goal) {
        size_t size = random_size(&member->random, 4, 24);
        struct block *any = &set[random_below(&member->random, SIZES_SLOTS)];

        while (alive + size > SIZES_ALIVE)
            end_counted(&set[random_below(&member->random, SIZES_SLOTS)], &alive);
        end_counted(any, &alive);
        *any = block_new(member, size);
        block_touch(any);
        alive += size;
    }
    for (unsigned i = 0; i < SIZES_SLOTS; i++)
        block_end(&set[i]);
    own_memory_end(set, SIZES_SLOTS * sizeof *set);
}

static void large_work(struct member *member)
{
    uint64_t goal = load_scaled(member->load, 400);
    struct block slots[4] = {{NULL, 0}};

    while (member->blocks < goal) {
        struct block *any = &slots[random_below(&member->random, 4)];

        block_end(any);
        *any = block_new(member, random_size(&member->random, 18, 25));
        block_touch(any);
    }
    for (unsigned i = 0; i < 4; i++)
        block_end(&slots[i]);
}

#define VECTORS     64
#define VECTOR_MOST ((size_t)1 << 20)

struct vector {
    struct block block;
    size_t used;
};

static void vector_append(struct member *member, struct vector *vector, size_t bytes)
{
    if (!vector->block.at) {
        vector->block = block_new(member, 16);
        vector->used = sizeof(uint64_t);
    }
    while (vector->used + bytes >= vector->block.size) {
        block_resize(&vector->block, vector->block.size + vector->block.size / 2);
        member->blocks++;
    }
    memset((char *)vector->block.at + vector->used, 1, bytes);
    vector->used += bytes;
}

/* Appends in proportion to the vector, so that each size occurs about equally often. */
static void realloc_work(struct member *member)
{
    uint64_t goal = load_scaled(member->load, 60000);
    struct vector *vectors = own_memory(VECTORS * sizeof *vectors);

    while (member->blocks < goal) {
        struct vector *any = &vectors[random_below(&member->random, VECTORS)];

        vector_append(member, any, 1 + random_below(&member->random, 16 + any->used / 4));
        if (any->block.size > VECTOR_MOST)
            block_end(&any->block);
    }
    for (unsigned i = 0; i < VECTORS; i++)
        block_end(&vectors[i].block);
    own_memory_end(vectors, VECTORS * sizeof *vectors);
}

const struct pattern pattern_sizes = {"sizes",
                                      "16 bytes to 16 MB, 32 MB alive a thread, every page written",
                                      1, MAX_THREADS, .work = sizes_work};
const struct pattern pattern_large = {"large",
                                      "256 KB to 32 MB, four alive a thread, every page written", 1,
                                      MAX_THREADS, .work = large_work};
const struct pattern pattern_realloc = {"realloc", "vectors grow by realloc from 16 bytes to 1 MB",
                                        1, MAX_THREADS, .work = realloc_work};
