/* SPDX-License-Identifier: MIT */
/*
 * Huge mappings are aligned to huge pages. A freed one serves the next request it fits, the
 * smallest first. Excess is split off or cut, and a smaller one grows without copying.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include <sys/mman.h>

#include "support/pages.h"

#define UNIT (RUN_MAX / 2) /* blocks larger than two units are huge mappings */

static char *take(size_t bytes, bool *zeroed)
{
    char *huge = os_pages_alloc(bytes, os_page_size, 0, zeroed);

    assert_non_null(huge);
    return huge;
}

TEST(they_begin_at_huge_pages, begin_with_everything_kept)
{
    char *huge_mappings[20];

    for (unsigned i = 0; i < 20; i++) {
        huge_mappings[i] = take(2 * UNIT + (i + 1) * 37 * os_page_size, NULL);
        assert_int_equal((uintptr_t)huge_mappings[i] % HUGE_MAPPING_ALIGNMENT, 0);
        assert_ptr_equal(page_index_find(huge_mappings[i]).huge->base, huge_mappings[i]);
    }
    for (unsigned i = 0; i < 20; i++)
        os_pages_free(huge_mappings[i], 2 * UNIT + (i + 1) * 37 * os_page_size);
    assert_int_equal(pages().used, 0);
}

TEST(larger_alignments, begin_with_everything_kept)
{
    for (size_t alignment = UNIT; alignment <= 4 * REGION_SIZE; alignment *= 2) {
        char *small = os_pages_alloc(os_page_size, alignment, 0, NULL);
        char *large = os_pages_alloc(UNIT / 4, alignment, 0, NULL);

        assert_int_equal((uintptr_t)small % alignment, 0);
        assert_int_equal((uintptr_t)large % alignment, 0);
        memset(small, 1, os_page_size);
        memset(large, 1, UNIT / 4);
        os_pages_free(small, os_page_size);
        os_pages_free(large, UNIT / 4);
    }
}

TEST(the_smallest_that_fits, begin_with_everything_kept)
{
    char *three = take(3 * UNIT, NULL), *four = take(4 * UNIT, NULL), *nine = take(9 * UNIT, NULL);
    bool zeroed;

    memset(three, 1, 3 * UNIT);
    os_pages_free(nine, 9 * UNIT);
    os_pages_free(three, 3 * UNIT);
    os_pages_free(four, 4 * UNIT);
    assert_ptr_equal(take(4 * UNIT, NULL), four);
    assert_ptr_equal(take(3 * UNIT, &zeroed), three);
    assert_false(zeroed);
    assert_ptr_equal(take(9 * UNIT, NULL), nine);
    os_pages_free(nine, 9 * UNIT);
    os_pages_free(three, 3 * UNIT);
    os_pages_free(four, 4 * UNIT);
}

TEST(a_much_larger_one_is_split, begin_with_everything_kept)
{
    char *large = take(64 * UNIT, NULL), *front, *rest;

    memset(large, 1, UNIT);
    os_pages_free(large, 64 * UNIT);
    front = take(4 * UNIT, NULL);
    assert_ptr_equal(front, large);
    assert_int_equal(pages().used, 4 * UNIT);
    assert_int_equal(pages().retained, 60 * UNIT);
    rest = take(60 * UNIT, NULL);
    assert_ptr_equal(rest, large + 4 * UNIT);
    os_pages_free(front, 4 * UNIT);
    os_pages_free(rest, 60 * UNIT);
    assert_int_equal(os_pages_trim(), 64 * UNIT);
}

/* Returns a huge mapping that was a run, and so may be smaller than others. */
static char *take_grown(size_t bytes)
{
    char *run = take(bytes / 2, NULL), *next = take(os_page_size, NULL);
    char *huge = os_pages_resize(run, bytes / 2, bytes, NULL);

    os_pages_free(next, os_page_size);
    os_pages_trim();
    return huge;
}

/* The user gets up to an eighth more, which counts as used; any larger excess goes back. */
TEST(what_is_too_much_is_cut, begin_with_everything_kept)
{
    unsigned char resident[MIB / OS_PAGE_SIZE] = {0}; /* larger pages fill fewer entries */
    char *huge = take_grown(4 * MIB);

    if (!huge)
        skip(); /* a system without MREMAP_DONTUNMAP */
    memset(huge, 1, 4 * MIB);
    os_pages_free(huge, 4 * MIB);
    assert_ptr_equal(take(4 * MIB - 4 * os_page_size, NULL), huge);
    assert_int_equal(pages().used, 4 * MIB);
    os_pages_free(huge, 4 * MIB - 4 * os_page_size);
    assert_int_equal(pages().retained, 4 * MIB);
    assert_ptr_equal(take(3 * MIB, NULL), huge);
    assert_int_equal(pages().used, 3 * MIB);
    assert_int_equal(pages().retained, 0);
    assert_int_equal(mincore(huge + 3 * MIB, MIB, resident), 0);
    for (unsigned i = 0; i < MIB / OS_PAGE_SIZE; i++)
        assert_false(resident[i] & 1);
    os_pages_free(huge, 3 * MIB);
}

TEST(a_smaller_one_is_grown, begin_with_everything_kept)
{
    char *huge = take(8 * UNIT, NULL), *grown;
    bool zeroed;

    memset(huge, 7, 8 * UNIT);
    os_pages_free(huge, 8 * UNIT);
    grown = take(12 * UNIT, &zeroed);
    assert_false(zeroed);
    for (size_t i = 0; i < 12 * UNIT; i += os_page_size) /* old pages and new ones */
        assert_int_equal(grown[i], i < 8 * UNIT ? 7 : 0);
    assert_int_equal(pages().used, 12 * UNIT);
    assert_int_equal(pages().retained, 0);
    os_pages_free(grown, 12 * UNIT);
}

TEST(the_limit_counts_free_ones, begin_with_everything_kept)
{
    char *huge = take(8 * UNIT, NULL), *other;

    os_pages_set_limit(12 * UNIT);
    os_pages_free(huge, 8 * UNIT);
    other = take(10 * UNIT, NULL);
    assert_true(pages().used + pages().retained <= 12 * UNIT);
    assert_null(os_pages_alloc(3 * UNIT, os_page_size, 0, NULL));
    os_pages_free(other, 10 * UNIT);
    other = take(12 * UNIT, NULL); /* free memory counts as available */
    assert_null(os_pages_resize(other, 12 * UNIT, 13 * UNIT, NULL));
    os_pages_free(other, 12 * UNIT);
    os_pages_set_limit(0);
}

SUITE()
