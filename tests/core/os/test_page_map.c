/* SPDX-License-Identifier: MIT */
/*
 * The page map names the owner of each page of a range, whatever words it uses for that: those of
 * pages, of chunks of 2 MiB and of whole GiB. Ranges are entered, resized at both ends and cleared
 * at random, and compared with a list of them. A range that is gone leaves no word behind.
 *
 * ctest: not-with address (it has its own mmap)
 * ctest: not-with thread (the same)
 */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/owned_pages.h"

#define PAGE   ((size_t)OS_PAGE_SIZE)
#define GIB    ((size_t)1 << PAGE_MAP_LEAF_SHIFT)
#define AREA   (6 * GIB)
#define RANGES 6
#define WORDS  (PAGE_MAP_LEAF_PAGES + (GIB >> PAGE_MAP_CHUNK_SHIFT))
#define STEPS  4000

struct range {
    size_t first, end; /* offsets in the area; the same if the range is not there */
};

static char *area;
static struct range ranges[RANGES];
static char owners[RANGES];
static uint64_t seed = 1;

static size_t random_below(size_t bound)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (size_t)(seed >> 20) % bound;
}

/* Returns an offset up to `most`, often near one at which chunks or leaves meet. */
static size_t random_offset(size_t least, size_t most)
{
    static const size_t units[] = {PAGE_MAP_CHUNK, GIB, PAGE_MAP_CHUNK, 1};
    size_t at = least + random_below(most - least + 1), unit = units[random_below(4)];

    at = at / unit * unit + random_below(3) * PAGE;
    at = at >= 2 * PAGE ? at - random_below(3) * PAGE : at;
    at = at / PAGE * PAGE;
    return at < least ? least : at > most ? most : at;
}

static void *owner_at(size_t offset)
{
    for (unsigned i = 0; i < RANGES; i++)
        if (ranges[i].first <= offset && offset < ranges[i].end)
            return &owners[i];
    return NULL;
}

static void assert_found(size_t offset)
{
    if (offset < AREA)
        assert_ptr_equal(os_page_owner(area + offset), owner_at(offset));
}

static void assert_all_found(void)
{
    for (unsigned i = 0; i < RANGES; i++) {
        struct range range = ranges[i];

        if (range.first == range.end)
            continue;
        assert_ptr_equal(os_page_owner_of_object(area + range.first), &owners[i]);
        assert_found(range.first - 1);
        for (size_t unit = PAGE; unit <= GIB; unit <<= 9) {
            assert_found(range.first + unit - 1);
            assert_found(range.first + unit);
            assert_found(range.end - unit);
            assert_found((range.first / unit + 1) * unit);
            assert_found(range.end / unit * unit - 1);
        }
        for (unsigned n = 0; n < 8; n++)
            assert_found(range.first + random_below(range.end - range.first));
        assert_found(range.end);
    }
    assert_found(random_below(AREA));
}

/* The free space around a range that is not there, or with the range. */
static struct range room_of(unsigned i)
{
    size_t at = ranges[i].first < ranges[i].end ? ranges[i].first : random_offset(0, AREA - PAGE);
    struct range room = {0, AREA};

    for (unsigned other = 0; other < RANGES; other++) {
        if (other == i || ranges[other].first == ranges[other].end)
            continue;
        if (ranges[other].first <= at && at < ranges[other].end)
            return (struct range){at, at};
        if (ranges[other].end <= at && ranges[other].end > room.first)
            room.first = ranges[other].end;
        if (ranges[other].first > at && ranges[other].first < room.end)
            room.end = ranges[other].first;
    }
    return room;
}

static void enter(unsigned i)
{
    struct range room = room_of(i);

    if (room.end - room.first < PAGE)
        return;
    ranges[i].first = random_offset(room.first, room.end - PAGE);
    ranges[i].end = random_offset(ranges[i].first + PAGE, room.end);
    assert_true(
        os_page_owner_set(area + ranges[i].first, ranges[i].end - ranges[i].first, &owners[i]));
}

static void resize(unsigned i)
{
    struct range room = room_of(i), before = ranges[i], after;
    char *first;

    after.first = random_below(3) ? before.first : random_offset(room.first, before.end - PAGE);
    after.end = random_below(3) ? random_offset(after.first + PAGE, room.end) : before.end;
    first = area + after.first;
    assert_true(os_page_owner_prepare(first, after.end - after.first));
    os_page_owner_resize(area + before.first, before.end - before.first, first,
                         after.end - after.first, &owners[i]);
    ranges[i] = after;
}

static void leave(unsigned i)
{
    assert_true(os_page_owner_set(area + ranges[i].first, ranges[i].end - ranges[i].first, NULL));
    ranges[i].end = ranges[i].first;
}

static void assert_empty(void)
{
    for (size_t index = (uintptr_t)area / GIB; index <= ((uintptr_t)area + AREA - 1) / GIB;
         index++) {
        void **leaf = os_page_map[index];
        size_t used = 0;

        for (size_t word = 0; leaf && word < WORDS; word++)
            used += leaf[word] != NULL;
        assert_int_equal(used, 0);
        assert_true(!os_page_map_whole || !os_page_map_whole[index]);
    }
}

static int reserve(void **unused)
{
    (void)unused;
    area = mmap(NULL, AREA + GIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED)
        return -1;
    area = (char *)round_up((uintptr_t)area, GIB); /* no leaf of it is used by the library */
    return 0;
}

TEST(ranges_at_random)
{
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned i = (unsigned)random_below(RANGES);

        if (ranges[i].first == ranges[i].end)
            enter(i);
        else if (random_below(3))
            resize(i);
        else
            leave(i);
        assert_all_found();
    }
    for (unsigned i = 0; i < RANGES; i++)
        if (ranges[i].first < ranges[i].end)
            leave(i);
    assert_empty();
}

static char *next_place; /* of the next mapping */

/* In the place of the C library's. */
void *mmap(void *place, size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (next_place && bytes >= 4 * MIB) {
        place = next_place;
        flags |= MAP_FIXED;
        next_place = NULL;
    }
    return (void *)syscall(SYS_mmap, place, bytes, protection, flags, file, offset);
}

/* A run that grows, in a region of which the second leaf is not made yet. The fifth megabyte makes
 * a region of four. */
TEST_FIRST(a_region_in_two_leaves)
{
    char *others[4], *run;

    for (unsigned i = 0; i < 4; i++)
        others[i] = take(MIB);
    next_place = area + GIB - 2 * MIB;
    run = take(MIB);
    assert_ptr_equal(run, area + GIB - 2 * MIB);
    assert_null(os_page_map[(uintptr_t)(area + GIB) / GIB]);
    assert_ptr_equal(os_pages_resize(run, MIB, 3 * MIB, &owner), run);
    assert_ptr_equal(os_page_owner(run + 3 * MIB - 1), &owner);
    assert_null(os_page_owner(run + 3 * MIB));
    give(run, 3 * MIB);
    assert_null(os_page_owner(run + 2 * MIB));
    for (unsigned i = 0; i < 4; i++)
        give(others[i], MIB);
}

/* A block of 4 GiB touches few words. */
TEST(large_ranges_need_few_words)
{
    size_t used = 0;

    assert_true(os_page_owner_set(area + PAGE, 4 * GIB, &owners[0]));
    for (size_t index = 0; index < AREA / GIB; index++) {
        void **leaf = os_page_map[(uintptr_t)area / GIB + index];

        for (size_t word = 0; leaf && word < WORDS; word++)
            used += leaf[word] != NULL;
        used += os_page_map_whole[(uintptr_t)area / GIB + index] != NULL;
    }
    assert_int_equal(used, 511 + 511 + 3 + 0 + 1); /* both ends of pages, of chunks, whole GiB */
    assert_true(os_page_owner_set(area + PAGE, 4 * GIB, NULL));
    assert_empty();
}

SUITE_BETWEEN(reserve, NULL)
