/* SPDX-License-Identifier: MIT */
/*
 * Blocks of metadata: zeroed, aligned, apart from each other, whatever is freed before; and memory
 * whose blocks are all free goes back to the system and is used again, also for other sizes.
 */
#define _GNU_SOURCE

#include "os/os.h"
#include "support/suite.h"

#define BLOCKS 20000
#define SLACK  ((uint64_t)1 << 20) /* a chunk in use, and a page of each free one */

static struct {
    unsigned char *block;
    size_t bytes;
} blocks[BLOCKS];
static uint64_t seed = 1;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static void make_block(unsigned i, size_t bytes)
{
    unsigned char *block = os_meta_alloc(bytes);

    assert_non_null(block);
    assert_int_equal((uintptr_t)block % ((bytes + 63) / 64 % 2 ? 64 : 128), 0);
    for (size_t at = 0; at < bytes; at++)
        assert_int_equal(block[at], 0);
    memset(block, (int)(i % 255) + 1, bytes);
    blocks[i].block = block;
    blocks[i].bytes = bytes;
}

static void end_block(unsigned i)
{
    for (size_t at = 0; at < blocks[i].bytes; at++)
        assert_int_equal(blocks[i].block[at], (int)(i % 255) + 1);
    os_meta_free(blocks[i].block, blocks[i].bytes);
    blocks[i].block = NULL;
}

static size_t some_size(void)
{
    return 1 + next_random() % (next_random() % 8 ? 700 : OS_META_LOCK_FREE);
}

TEST(blocks_are_zeroed_and_apart)
{
    for (unsigned i = 0; i < 10 * BLOCKS; i++) {
        unsigned at = (unsigned)(next_random() % (BLOCKS / 10));

        if (blocks[at].block)
            end_block(at);
        else
            make_block(at, some_size());
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        if (blocks[i].block)
            end_block(i);
}

static void make_all(size_t bytes)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        make_block(i, bytes);
}

TEST(memory_whose_blocks_are_all_free_goes_back)
{
    uint64_t before = os_meta_touched(), mapped;
    struct os_pages_stats stats;

    make_all(1000);
    assert_true(os_meta_touched() > before + BLOCKS * 1000);
    os_pages_stats(&stats);
    mapped = stats.metadata;
    for (unsigned i = 0; i < BLOCKS; i++)
        end_block(i);
    assert_true(os_meta_touched() < before + SLACK);
    make_all(500); /* in the same memory */
    os_pages_stats(&stats);
    assert_int_equal(stats.metadata, mapped);
    for (unsigned i = BLOCKS; i--;)
        end_block(i);
    assert_true(os_meta_touched() < before + SLACK);
}

/* One block in 20 stays, so no chunk of 256 KiB is free. */
TEST(memory_with_a_block_in_use_stays)
{
    make_all(1000);
    for (unsigned i = 0; i < BLOCKS; i++)
        if (i % 20)
            end_block(i);
    for (unsigned i = 0; i < BLOCKS; i++)
        if (i % 20)
            make_block(i, 1000);
    for (unsigned i = 0; i < BLOCKS; i++)
        end_block(i);
}

SUITE()
