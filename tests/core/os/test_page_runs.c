/* SPDX-License-Identifier: MIT */
/*
 * Runs of pages: a run goes into the first hole that fits, at the requested alignment. Free
 * neighbours are joined, the first regions are used first, and empty ones go back. No page is
 * handed out twice.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "support/pages.h"
#include "support/random.h"

#define PAGE  os_page_size
#define PAGES (unsigned)(REGION_SIZE / PAGE)
#define UNITS (unsigned)(PAGE / OS_PAGE_SIZE) /* units of regions per page */

static char *take(size_t pages)
{
    char *run = os_pages_alloc(pages * PAGE, PAGE, 0, NULL);

    assert_non_null(run);
    return run;
}

static struct region *region_at(const void *run)
{
    struct place place = page_index_find(run);

    assert_non_null(place.region);
    return place.region;
}

TEST(the_first_hole_that_fits, begin_with_everything_kept)
{
    char *base = take(1), *runs[REGION_PAGES];

    for (unsigned i = 1; i < PAGES; i++)
        runs[i] = take(1);
    for (unsigned i = 1; i < PAGES; i++)
        assert_ptr_equal(runs[i], base + i * PAGE);
    for (unsigned size = 1; size <= 130; size++) { /* holes across borders of words */
        for (unsigned at = 60; at < 70; at++) {
            os_pages_free(base + at * PAGE, size * PAGE);
            os_pages_free(base + 10 * PAGE, size == 1 ? PAGE : (size - 1) * PAGE);
            assert_ptr_equal(take(size == 1 ? 1 : size - 1), base + 10 * PAGE);
            if (at > 10 + size)
                assert_ptr_equal(take(size), base + at * PAGE);
            else
                break;
        }
        if (60 <= 10 + size)
            break;
    }
    for (unsigned i = 0; i < PAGES; i++)
        if (bits_test(region_at(base)->used, i * UNITS))
            os_pages_free(base + i * PAGE, PAGE);
}

TEST(neighbours_become_one, begin_with_everything_kept)
{
    char *base = take(1);

    for (unsigned i = 1; i < PAGES; i++)
        take(1);
    for (unsigned i = 0; i < PAGES; i++) /* far from the order of addresses */
        os_pages_free(base + i * 389 % PAGES * PAGE, PAGE);
    assert_int_equal(region_at(base)->longest, REGION_PAGES);
    assert_ptr_equal(take(PAGES / 2), base);
    assert_ptr_equal(take(PAGES / 2), base + PAGES / 2 * PAGE);
    os_pages_free(base, PAGES / 2 * PAGE);
    os_pages_free(base + PAGES / 2 * PAGE, PAGES / 2 * PAGE);
}

TEST(alignment_is_kept, begin_with_everything_kept)
{
    for (size_t alignment = PAGE; alignment <= REGION_SIZE; alignment *= 2) {
        char *odd = take(1);
        char *run = os_pages_alloc(3 * PAGE, alignment, 0, NULL);

        assert_non_null(run);
        assert_int_equal((uintptr_t)run & (alignment - 1), 0);
        os_pages_free(run, 3 * PAGE);
        os_pages_free(odd, PAGE);
    }
}

TEST(the_first_regions_are_used_first, begin_with_everything_kept)
{
    char *halves[20];

    for (unsigned i = 0; i < 20; i++)
        halves[i] = take(PAGES / 2);
    for (unsigned i = 0; i < 20; i += 2) {
        assert_ptr_equal(region_at(halves[i]), region_at(halves[i + 1]));
        assert_int_equal(region_at(halves[i])->slot, i / 2);
    }
    os_pages_free(halves[14], PAGES / 2 * PAGE);
    os_pages_free(halves[3], PAGES / 2 * PAGE);
    assert_ptr_equal(take(100), halves[3]);
    os_pages_free(halves[3], 100 * PAGE);
    halves[3] = take(PAGES / 2);
    halves[14] = take(PAGES / 2);
    for (unsigned i = 0; i < 20; i++)
        os_pages_free(halves[i], PAGES / 2 * PAGE);
}

TEST(empty_regions_are_unmapped, begin_with_everything_kept)
{
    char *first = take(PAGES / 2), *second = take(PAGES / 2), *third = take(PAGES / 2);

    memset(third, 1, PAGE);
    os_pages_free(third, PAGES / 2 * PAGE);
    assert_non_null(page_index_find(third).region);
    os_pages_trim();
    assert_null(page_index_find(third).region);
    assert_null(page_index_find(third + HUGE_MAPPING_ALIGNMENT).region);
    os_pages_free(first, PAGES / 2 * PAGE);
    os_pages_free(second, PAGES / 2 * PAGE);
    os_pages_trim();
    assert_null(page_index_find(first).region);
}

/* Checks the start of the search: no free run of 2^order pages or more begins before
 * first[order]. */
static void assert_first_is_a_bound(const struct region *region)
{
    for (unsigned start = bits_find_clear(region->used, 0, REGION_PAGES); start < REGION_PAGES;) {
        unsigned end = bits_find_set(region->used, start, REGION_PAGES);

        for (unsigned order = 0; order < RUN_ORDERS && (end - start) >> order; order++)
            assert_true(region->first[order] <= start);
        start = bits_find_clear(region->used, end, REGION_PAGES);
    }
}

static unsigned order_of(unsigned units)
{
    return 31 - (unsigned)__builtin_clz(units);
}

TEST(small_holes_are_passed_once, begin_with_everything_kept)
{
    char *base = take(PAGES / 4), *behind;
    const struct region *region = region_at(base);

    for (unsigned i = 0; i < PAGES / 4; i += 2)
        os_pages_free(base + i * PAGE, PAGE);
    behind = take(2);
    assert_ptr_equal(behind, base + PAGES / 4 * PAGE);
    assert_int_equal(region->first[order_of(2 * UNITS)], PAGES / 4 * UNITS);
    assert_int_equal(region->first[order_of(UNITS)], 0);
    os_pages_free(base + 101 * PAGE, PAGE); /* three free pages */
    assert_int_equal(region->first[order_of(2 * UNITS)], 100 * UNITS);
    assert_ptr_equal(take(3), base + 100 * PAGE);
    assert_first_is_a_bound(region);
    os_pages_free(behind, 2 * PAGE);
    for (unsigned i = 0; i < PAGES / 4; i++)
        if (bits_test(region->used, i * UNITS))
            os_pages_free(base + i * PAGE, PAGE);
}

/* Blocks of some MiB can reuse each other's place, whatever their sizes. */
TEST(large_runs_share_what_is_free, begin_with_everything_kept)
{
    char *first = take(PAGES / 16), *second = take(PAGES / 8), *last = take(1), *both;
    struct os_pages_stats stats;
    bool zeroed;

    memset(second, 1, PAGE);
    os_pages_free(first, PAGES / 16 * PAGE);
    os_pages_free(second, PAGES / 8 * PAGE);
    both = os_pages_alloc(PAGES / 16 * 3 * PAGE, PAGE, 0, &zeroed);
    os_pages_stats(&stats);
    assert_ptr_equal(both, first);
    assert_false(zeroed);
    assert_int_equal(stats.retained, 0);
    os_pages_free(both, PAGES / 16 * 3 * PAGE);
    os_pages_free(last, PAGE);
}

/* Compares with a model that knows every page's owner from the page's contents. */
#define BLOCKS 300

TEST(a_random_walk, begin_with_everything_kept)
{
    static struct {
        uint64_t *run;
        size_t pages;
    } blocks[BLOCKS];
    uint64_t random = 1;

    os_pages_set_retain(1 << 20);
    for (unsigned step = 0; step < 60000; step++) {
        unsigned i;
        bool zeroed;

        i = random_below(&random, BLOCKS);
        now += random >> 44; /* a million ns, so windows begin on the way */
        if (step % 500 == 0 && blocks[i].run)
            assert_first_is_a_bound(region_at(blocks[i].run));
        if (blocks[i].run) {
            for (size_t page = 0; page < blocks[i].pages; page++)
                assert_int_equal(blocks[i].run[page * PAGE / 8], i * 1000 + page);
            os_pages_free(blocks[i].run, blocks[i].pages * PAGE);
            blocks[i].run = NULL;
            continue;
        }
        blocks[i].pages = 1 + (random >> 40) % (step % 16 ? 16 : 512);
        blocks[i].run = os_pages_alloc(blocks[i].pages * PAGE, PAGE, 0, &zeroed);
        assert_non_null(blocks[i].run);
        for (size_t page = 0; page < blocks[i].pages; page++) {
            assert_true(!zeroed || blocks[i].run[page * PAGE / 8] == 0);
            blocks[i].run[page * PAGE / 8] = i * 1000 + page;
        }
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        if (blocks[i].run)
            os_pages_free(blocks[i].run, blocks[i].pages * PAGE);
    os_pages_trim();
}

TEST(nothing_is_left)
{
    struct os_pages_stats stats;

    os_pages_trim();
    os_pages_stats(&stats);
    assert_int_equal(stats.used, 0);
    assert_int_equal(stats.retained, 0);
}

TEST(foreign_pages_are_refused)
{
    static char foreign[OS_PAGE_SIZE_MOST] __attribute__((aligned(65536)));

    expect_death(os_pages_free(foreign, sizeof foreign), "do not belong to the page source");
}

SUITE()
