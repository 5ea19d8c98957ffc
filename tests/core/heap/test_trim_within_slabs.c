/* SPDX-License-Identifier: MIT */
/*
 * A trim also gives back pages within slabs in use, of blocks of any size, and returns their bytes.
 * What is live keeps its contents. Locked memory stays.
 *
 * ctest: not-with thread (resident memory)
 * ctest: small-pages (large ones all have live objects)
 * ctest: not-with address (resident memory)
 */
#include <sys/mman.h>
#include <unistd.h>

#include "support/slab_test.h"

#define COUNT 100000
#define EVERY 64
#define MIB   ((size_t)1 << 20)

static unsigned char *blocks[COUNT];
static size_t sizes[COUNT];

static size_t resident(void)
{
    unsigned long all, pages;
    FILE *file = fopen("/proc/self/statm", "r");

    assert_int_equal(fscanf(file, "%lu %lu", &all, &pages), 2);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void assert_live_ones(void)
{
    for (unsigned i = 0; i < COUNT; i += EVERY)
        for (size_t b = 0; b < sizes[i]; b++)
            assert_int_equal(blocks[i][b], (unsigned char)i);
}

/* Makes blocks and frees all but one in EVERY; returns the bytes of all. */
static size_t fill(void)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < COUNT; i++) {
        sizes[i] = 16 + i * 7919u % 400;
        blocks[i] = prudence_malloc(sizes[i]);
        assert_non_null(blocks[i]);
        memset(blocks[i], (int)i, sizes[i]);
        bytes += sizes[i];
    }
    for (unsigned i = 0; i < COUNT; i++)
        if (i % EVERY)
            prudence_free(blocks[i]);
    return bytes;
}

static void end(void)
{
    assert_live_ones();
    for (unsigned i = 0; i < COUNT; i += EVERY)
        prudence_free(blocks[i]);
    prudence_trim();
}

TEST(most_goes)
{
    size_t bytes, before, went;

    bytes = fill();
    before = resident();
    went = prudence_trim();
    assert_true(went >= bytes / 2);
    assert_true(resident() <= before - bytes / 2);
    end();
}

/* What went is reported once, and goes again when it was used in between. */
TEST(again_and_again)
{
    size_t bytes = fill(), went = prudence_trim(), again;

    assert_true(went >= bytes / 2);
    assert_int_equal(prudence_trim(), 0);
    for (unsigned i = 0; i < COUNT; i++)
        if (i % EVERY)
            blocks[i] = prudence_malloc(sizes[i]);
    for (unsigned i = 0; i < COUNT; i++)
        if (i % EVERY)
            prudence_free(blocks[i]);
    again = prudence_trim();
    assert_true(again >= bytes / 2);
    end();
}

TEST(locked_memory_stays)
{
    size_t before;

    if (mlockall(MCL_CURRENT | MCL_FUTURE))
        skip();
    fill();
    before = resident();
    prudence_trim();
    assert_in_range(resident(), before - MIB, before + MIB);
    munlockall();
    end();
}

SUITE(pin_thread())
