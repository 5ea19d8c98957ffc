/* SPDX-License-Identifier: MIT */
/*
 * Regions of every size. The first ones follow use, and when the system refuses one, a smaller one
 * is made. In all of them runs are found and aligned, never handed out twice, and given back. The
 * arena finds regions across its groups.
 *
 * ctest: not-with thread (one thread)
 */
#include <sys/resource.h>

#include "support/pages.h"
#include "support/process_memory.h"

#define PAGE os_page_size

static struct region *region_at(const void *run)
{
    struct place place = page_index_find(run);

    assert_non_null(place.region);
    return place.region;
}

static int begin(void **state)
{
    begin_with_everything_kept(state);
    region_small = REGION_SMALL;
    os_pages_trim();
    assert_int_equal(arena_bytes(0), 0);
    return 0;
}

/* Allocates half a MiB at a time. */
TEST(the_first_follow_use, begin)
{
    static const size_t expected[] = {1, 1, 2, 4, 64};
    char *runs[64];
    unsigned count = 0;

    for (unsigned i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        for (unsigned k = 0; k < 2 * expected[i] && count < 64; k++) {
            runs[count] = os_pages_alloc(MIB / 2, PAGE, 0, NULL);
            assert_non_null(runs[count]);
            memset(runs[count], 1, MIB / 2);
            assert_int_equal(region_at(runs[count])->slot, i);
            assert_int_equal(region_at(runs[count])->pages * OS_PAGE_SIZE, expected[i] * MIB);
            count++;
        }
    }
    assert_int_equal(pages().used, count * MIB / 2);
    for (unsigned i = 0; i < count; i++)
        os_pages_free(runs[i], MIB / 2);
    os_pages_trim();
    for (unsigned i = 0; i < count; i++)
        assert_null(page_index_find(runs[i]).region);
    assert_int_equal(arena_bytes(0), 0);
    assert_int_equal(pages().used + pages().retained, 0);
}

TEST(a_large_run_has_a_large_region, begin)
{
    char *run = os_pages_alloc(2 * MIB, PAGE, 0, NULL);

    assert_int_equal(region_at(run)->pages, REGION_PAGES);
    os_pages_free(run, 2 * MIB);
    os_pages_trim();
}

TEST(alignments, begin)
{
    char *odd[40], *runs[40];
    unsigned count = 0;

    for (unsigned round = 0; round < 2; round++) {
        for (size_t alignment = PAGE; alignment <= REGION_SIZE; alignment *= 2) {
            odd[count] = os_pages_alloc(PAGE, PAGE, 0, NULL);
            runs[count] = os_pages_alloc(3 * PAGE, alignment, 0, NULL);
            assert_non_null(runs[count]);
            assert_int_equal((uintptr_t)runs[count] & (alignment - 1), 0);
            memset(runs[count], (int)count, 3 * PAGE);
            count++;
        }
    }
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(runs[i][0], i);
        assert_int_equal(runs[i][3 * PAGE - 1], i);
        os_pages_free(odd[i], PAGE);
        os_pages_free(runs[i], 3 * PAGE);
    }
    os_pages_trim();
    assert_int_equal(pages().used + pages().retained, 0);
}

#if !defined(__SANITIZE_THREAD__) &&                                                               \
    !defined(__SANITIZE_ADDRESS__) /* theirs is taken from the same */
TEST(where_a_region_is_refused_a_smaller_one_does, begin)
{
    struct rlimit before, limit;
    char *runs[2];

    os_pages_free(os_pages_alloc(PAGE, PAGE, 0, NULL), PAGE); /* makes the books */
    os_pages_trim();
    region_small = 0;
    getrlimit(RLIMIT_AS, &before);
    limit = before;
    limit.rlim_cur = address_space() + 40 * MIB;
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    for (unsigned i = 0; i < 2; i++) {
        runs[i] = os_pages_alloc(MIB, PAGE, 0, NULL);
        assert_non_null(runs[i]);
        memset(runs[i], 1, MIB);
    }
    assert_int_equal(region_at(runs[0])->pages * OS_PAGE_SIZE, 16 * MIB);
    assert_ptr_equal(region_at(runs[1]), region_at(runs[0]));
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    os_pages_free(runs[0], MIB);
    os_pages_free(runs[1], MIB);
    os_pages_trim();
    assert_int_equal(arena_bytes(0), 0);
}
#endif

/* Adds more regions than a group has, on an unused node. Only their slots are examined. */
TEST(the_arena_has_groups)
{
    const unsigned node = POSIX_NODES_MAX - 1, count = 4096 * 2 + 10;
    struct region **regions = calloc(count, sizeof *regions);
    unsigned slot = ARENA_FULL;

    assert_null(arena_find_before(node, &slot, true));
    slot = 0;
    assert_null(arena_find(node, &slot, 1));
    for (unsigned i = 0; i < count; i++) {
        regions[i] = calloc(1, sizeof **regions);
        regions[i]->node = node;
        regions[i]->pages = 1;
        if (!arena_add(regions[i])) {
            assert_int_equal(i % 4096, 0);
            assert_true(arena_prepare(node));
            assert_true(arena_add(regions[i]));
        }
        assert_int_equal(regions[i]->slot, i);
    }
    assert_int_equal(arena_bytes(node), count * OS_PAGE_SIZE);
    static const unsigned places[] = {3, 4095, 4096, 8191, 8192, 8201};
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct region *region = regions[places[i]];

        region->longest = 7;
        arena_note_longest(region);
        region->dirty_pages = 1;
        arena_note_dirty(region);
        slot = 0;
        assert_ptr_equal(arena_find(node, &slot, 7), region);
        assert_int_equal(slot, places[i]);
        slot = 0;
        assert_null(arena_find(node, &slot, 8));
        slot = ARENA_FULL;
        assert_ptr_equal(arena_find_before(node, &slot, true), region);
        slot = places[i];
        assert_null(arena_find_before(node, &slot, true)); /* none before */
        region->longest = 0;
        arena_note_longest(region);
        region->dirty_pages = 0;
        arena_note_dirty(region);
    }
    for (unsigned i = count; i-- > 0;) {
        arena_remove(regions[i]);
        if (i == 5000) { /* the lowest free slot is taken again */
            arena_remove(regions[40]);
            assert_true(arena_add(regions[40]));
            assert_int_equal(regions[40]->slot, 40);
        }
    }
    assert_int_equal(arena_bytes(node), 0);
    for (unsigned i = 0; i < count; i++)
        free(regions[i]);
    free(regions);
}

SUITE()
