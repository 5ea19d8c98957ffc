/* SPDX-License-Identifier: MIT */
/*
 * Making used memory zero: whatever was written, and wherever the memory begins, it is zero
 * afterwards. With a clock that says how long purges take: parts that were touched are cleared and
 * stay, parts that were not are purged, and after blocks that were touched wholly some are cleared
 * without a check.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/pages.h"

#define PAGE    os_page_size
#define BYTES   (16 * MIB)
#define COUNT   (BYTES / OS_PAGE_SIZE)
#define PURGED  1000     /* ns of a purge of pages that are there */
#define SAMPLES (4 * 16) /* pages that stay purged */

static char *block;
static uint64_t now;
static unsigned looks; /* at the clock */

/* Returns the number of pages there, also where the library takes several of the system for one. */
static unsigned resident(const char *from, size_t bytes)
{
    unsigned char there[COUNT];
    size_t unit = (size_t)sysconf(_SC_PAGESIZE);
    size_t found = 0;

    assert_return_code(mincore((void *)(uintptr_t)from, bytes, there), 0);
    for (size_t i = 0; i < bytes / unit; i++)
        found += there[i] & 1;
    return (unsigned)(found * unit / PAGE);
}

/* Between two checks a purge has taken the longer the more pages have gone. */
static uint64_t clock_of_purges(void)
{
    static unsigned before;
    unsigned there = resident(block, BYTES);

    now += 1 + (looks++ % 2 && there < before ? PURGED : 0);
    before = there;
    return now;
}

static void assert_zero(const char *memory, size_t bytes)
{
    static const char zeros[64 << 10];

    for (size_t at = 0; at < bytes; at += min_size(sizeof zeros, bytes - at))
        assert_memory_equal(memory + at, zeros, min_size(sizeof zeros, bytes - at));
}

/* Sparse blocks end what earlier blocks were guessed from. */
static void begin(void)
{
    block = os_pages_alloc(BYTES, 2 * MIB, 0, NULL);
    assert_non_null(block);
    madvise(block, BYTES, MADV_NOHUGEPAGE); /* one page touched is one page there */
    pages_zero_clock = clock_of_purges;
    for (unsigned i = 0; i < 20; i++) {
        madvise(block, BYTES, MADV_DONTNEED);
        os_pages_zero(block, BYTES);
    }
    assert_int_equal(resident(block, BYTES), 0);
    looks = 0;
}

static void end(void)
{
    pages_zero_clock = os_clock_ns;
    os_pages_free(block, BYTES);
}

TEST(one_page_of_many)
{
    begin();
    block[3 * PAGE] = 1;
    os_pages_zero(block, BYTES);
    assert_int_equal(resident(block, BYTES), 0);
    assert_zero(block, BYTES);
    end();
}

TEST(all_pages_stay)
{
    begin();
    memset(block, 1, BYTES);
    os_pages_zero(block, BYTES);
    assert_int_equal(resident(block, BYTES), BYTES / PAGE - SAMPLES);
    assert_zero(block, BYTES);
    end();
}

TEST(each_part_by_itself)
{
    begin();
    memset(block + BYTES / 4, 1, BYTES / 4);
    block[BYTES - 1] = 1;
    os_pages_zero(block, BYTES);
    assert_int_equal(resident(block, BYTES / 4), 0);
    assert_int_equal(resident(block + BYTES / 4, BYTES / 4), BYTES / 4 / PAGE - SAMPLES / 4);
    assert_int_equal(resident(block + BYTES / 2, BYTES / 2), 0);
    assert_zero(block, BYTES);
    end();
}

/* After 1 check 1, 3, 7, 15 and again 15 blocks, of which the last only has its samples purged. */
TEST(blocks_touched_wholly_are_sampled_seldom)
{
    unsigned sampled = 0;

    begin();
    for (unsigned i = 0; i < 1 + 1 + 1 + 3 + 1 + 7 + 1 + 15 + 1 + 15; i++) {
        unsigned before = looks;

        memset(block, 1, BYTES);
        os_pages_zero(block, BYTES);
        sampled += looks != before;
        assert_zero(block, BYTES);
    }
    assert_int_equal(sampled, 5 + 5);
    end();
}

/* Clearing does not make a block seem touched for ever. */
TEST(a_block_is_touched_no_longer)
{
    begin();
    memset(block, 1, BYTES);
    os_pages_zero(block, BYTES);
    for (unsigned i = 0; i < 2; i++) {
        block[0] = 1;
        os_pages_zero(block, BYTES);
    }
    assert_int_equal(resident(block, BYTES), 0);
    end();
}

TEST(odd_ends)
{
    static const size_t from[] = {0, 1, 4095, 5000}, to[] = {0, 1, 4097, 100};

    for (unsigned i = 0; i < 16; i++) {
        size_t first = from[i / 4], last = BYTES - to[i % 4];

        begin();
        memset(block, 1, 2 * PAGE);
        memset(block + BYTES - 2 * PAGE, 1, 2 * PAGE);
        os_pages_zero(block + first, last - first);
        assert_zero(block + first, last - first);
        for (size_t at = 0; at < first; at++)
            assert_int_equal(block[at], 1);
        for (size_t at = last; at < BYTES; at++)
            assert_int_equal(block[at], 1);
        end();
    }
}

TEST(locked_memory_is_cleared)
{
    begin();
    if (mlock(block, BYTES)) {
        print_message("no memory may be locked\n");
        end();
        skip();
    }
    block[5 * PAGE] = 1;
    os_pages_zero(block, BYTES);
    assert_zero(block, BYTES);
    munlock(block, BYTES);
    end();
}

SUITE()
