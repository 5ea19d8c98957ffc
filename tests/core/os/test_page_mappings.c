/* SPDX-License-Identifier: MIT */
/*
 * The number of mappings stays bounded, for any order of allocations, frees and resizes. When no
 * further mapping is possible, pages can still be kept or given back.
 *
 * ctest: not-with thread (ThreadSanitizer clears its own memory at each mapping's end, and has
 * mappings of its own)
 */
#include <sys/mman.h>

#include "pages/page_source.h"
#include "support/process_memory.h"
#include "support/random.h"
#include "support/slab_test.h"

#define MIB    ((size_t)1 << 20)
#define BLOCKS 100

static uint64_t now;

static uint64_t our_clock(void)
{
    return now;
}

static uint64_t random_state = 1;

static size_t below(size_t bound)
{
    return random_below(&random_state, bound);
}

static size_t random_size(void)
{
    return below(2) ? 32768 + below(2 * MIB) : 2 * MIB + below(14 * MIB);
}

TEST(mappings_stay_bounded)
{
    char *blocks[BLOCKS] = {NULL};
    unsigned before = mappings(), most = 0;

    posix_clock_injected = our_clock;
    for (unsigned step = 0; step < 20000; step++) {
        size_t i = below(BLOCKS);
        unsigned what = (unsigned)below(3);

        now += 1000000;
        if (!blocks[i]) {
            blocks[i] = prudence_malloc(random_size());
        } else if (what) {
            char *resized = prudence_realloc(blocks[i], random_size());

            assert_non_null(resized);
            blocks[i] = resized;
        } else {
            prudence_free(blocks[i]);
            blocks[i] = NULL;
            continue;
        }
        assert_non_null(blocks[i]);
        memset(blocks[i], 1, 5000); /* two pages, so that there are mappings with memory to merge */
        if (step % 500 == 0)
            most = (unsigned)max_size(most, mappings());
    }
    print_message("%u mappings before, at most %u\n", before, most);
    assert_in_range(most, before,
                    before + 4 * BLOCKS); /* about one per huge mapping, used or free */
    for (unsigned i = 0; i < BLOCKS; i++)
        prudence_free(blocks[i]);
    prudence_trim();
    assert_in_range(mappings(), before - 10, before + 20);
}

/* Uses up all mappings of the process, by alternating the protection of pages. */
static char *use_up(size_t *bytes)
{
    char *many;

    *bytes = (size_t)1 << 30;
    many = mmap(NULL, *bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(many, MAP_FAILED);
    for (size_t at = 0; at < *bytes; at += 2 * os_page_size)
        if (mprotect(many + at, os_page_size, PROT_READ))
            return many;
    munmap(many, *bytes);
    return NULL; /* more are allowed than the test can make */
}

TEST(where_no_mapping_can_be_had)
{
    char *blocks[20], *many, *resized;
    size_t bytes;
    struct os_pages_stats stats;

    posix_clock_injected = our_clock;
    for (unsigned i = 0; i < 20; i++) {
        blocks[i] = prudence_malloc(i % 2 ? 3 * MIB : 100000);
        assert_non_null(blocks[i]);
        memset(blocks[i], (int)i, 100000);
    }
    many = use_up(&bytes);
    if (!many)
        skip();
    for (unsigned i = 0; i < 20; i += 4) {
        prudence_free(blocks[i]);
        prudence_free(blocks[i + 1]);
    }
    prudence_trim(); /* unmapping from the middle of a mapping now fails */
    os_pages_stats(&stats);
    assert_int_equal(stats.retained, 0);
    for (unsigned i = 2; i < 20; i += 4) {
        resized = prudence_realloc(blocks[i + 1], 40 * MIB); /* may fail */
        if (resized) {
            assert_int_equal(resized[99999], i + 1);
            blocks[i + 1] = prudence_realloc(resized, 3 * MIB);
            assert_non_null(blocks[i + 1]);
        }
        for (unsigned j = 0; j < 100000; j++)
            assert_int_equal(blocks[i + 1][j], i + 1);
        assert_int_equal(blocks[i][99999], i);
    }
    munmap(many, bytes);
    for (unsigned i = 2; i < 20; i += 4) {
        prudence_free(blocks[i]);
        prudence_free(blocks[i + 1]);
    }
    prudence_trim();
    os_pages_stats(&stats);
    assert_int_equal(stats.used + stats.retained, 0);
}

/* Unmapping most of them would split a mapping, so they are purged. */
TEST(one_trim_purges_all)
{
    char *blocks[12], *many;
    struct os_pages_stats stats;
    size_t bytes;

    prudence_free(prudence_malloc(12 * 40 * MIB)); /* later ones are parts of it */
    for (unsigned i = 0; i < 12; i++) {
        blocks[i] = prudence_malloc(40 * MIB);
        assert_non_null(blocks[i]);
    }
    many = use_up(&bytes);
    if (!many)
        skip();
    for (unsigned i = 1; i < 11; i++)
        prudence_free(blocks[i]);
    prudence_trim();
    os_pages_stats(&stats);
    munmap(many, bytes);
    assert_int_equal(stats.retained, 0);
    prudence_free(blocks[0]);
    prudence_free(blocks[11]);
    prudence_trim();
}

SUITE()
