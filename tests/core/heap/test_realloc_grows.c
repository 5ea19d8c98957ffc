/* SPDX-License-Identifier: MIT */
/*
 * Growth by realloc(), by a factor or in small steps, copies a bounded number of bytes per byte of
 * the result, even when other blocks follow, and holds no unnecessary memory.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "support/slab_test.h"
#include "support/stats.h"

#define MIB    ((size_t)1 << 20)
#define OTHERS 5000

/* Counts allocations. Every copy is one, and copies no more than the block has. */
static uint64_t allocations(void)
{
    return stats_now().allocations;
}

#define MOVES 12

/* As a buffer to which single bytes are appended. */
TEST(growth_by_bytes_moves_rarely)
{
    char *block = prudence_malloc(100);
    uint64_t before = allocations();

    for (size_t size = 101; size <= 10000; size++) {
        block = prudence_realloc(block, size);
        assert_non_null(block);
        block[size - 1] = (char)size;
    }
    for (size_t size = 101; size <= 10000; size++)
        assert_int_equal(block[size - 1], (char)size);
    assert_in_range(allocations() - before, 1, MOVES);
    prudence_free_sized(block, 10000);
}

/* Up to the largest size class. */
TEST(growth_by_a_factor_gets_what_it_asks_for)
{
    for (size_t size = 16; size <= 16384; size *= 2) {
        char *block = prudence_realloc(prudence_malloc(size), 2 * size), *other;

        other = prudence_malloc(2 * size);
        assert_int_equal(prudence_usable_size(block), prudence_usable_size(other));
        prudence_free(block);
        prudence_free(other);
    }
}

/* First, because the class that would give room is not made yet. */
TEST_FIRST(growth_by_a_byte_needs_no_room_beyond)
{
    char *block = prudence_malloc(112);

    fill_pattern(block, 112);
    errno = EDOM;
    memory_fail(0, 1);
    block = prudence_realloc(block, 113);
    memory_succeed();
    assert_non_null(block);
    assert_int_equal(errno, EDOM);
    assert_true(has_pattern(block, 112));
    prudence_free(block);
}

static void check(const char *block, size_t size)
{
    for (size_t at = 0; at + sizeof at <= size; at += 4096)
        assert_int_equal(*(const size_t *)(block + at), at);
}

static size_t next_add(size_t size)
{
    return size + 4096;
}

static size_t next_factor(size_t size)
{
    return size * 3 / 2 + 1;
}

/* Returns an upper bound of the copied bytes. */
static size_t grow(size_t (*next)(size_t), size_t end, bool crowded)
{
    size_t size = 16, copied = 0, written = 0;
    char *block = prudence_malloc(size);
    static void *others[OTHERS];
    unsigned count = 0;

    while (size < end) {
        uint64_t before = allocations();
        size_t wanted = next(size);

        block = prudence_realloc(block, wanted);
        assert_non_null(block);
        if (allocations() != before)
            copied += size;
        size = wanted;
        for (; written + sizeof written <= size; written += 4096)
            *(size_t *)(block + written) = written;
        while (crowded && count < OTHERS && /* until one is right after the block */
               !os_page_owner(block + prudence_usable_size(block)))
            others[count++] = prudence_malloc(33000);
    }
    check(block, size);
    prudence_free(block);
    while (count)
        prudence_free(others[--count]);
    return copied;
}

static void no_more_copies_than(size_t (*next)(size_t), size_t end, bool crowded, size_t most)
{
    size_t copied = grow(next, end, crowded);

    print_message("%zu KiB copied for %zu KiB\n", copied >> 10, end >> 10);
    assert_true(copied <= most);
}

TEST(by_a_factor)
{
    no_more_copies_than(next_factor, 64 * MIB, false,
                        6 * MIB); /* doubling up to 2 MiB copies 2 MiB */
    no_more_copies_than(next_factor, 64 * MIB, true, 6 * MIB);
}

TEST(in_small_steps)
{
    no_more_copies_than(next_add, 64 * MIB, false, 20 * MIB);
    /* Nine times 2 MiB, for an eighth each. With larger pages, a neighbour leaves no room, so each
     * page copies. */
    no_more_copies_than(next_add, 64 * MIB, true,
                        os_page_size > OS_PAGE_SIZE ? 40 * MIB : 20 * MIB);
}

TEST(nothing_is_held_for_it)
{
    char *block = prudence_malloc(3 * MIB);
    struct prudence_stats before = stats_now(), after;

    block = prudence_realloc(block, 48 * MIB);
    prudence_stats(&after);
    assert_int_equal(after.slab_bytes - before.slab_bytes, 45 * MIB);
    assert_int_equal(prudence_usable_size(block), 48 * MIB);
    block = prudence_realloc(block, 4 * MIB);
    prudence_stats(&after);
    assert_int_equal(after.slab_bytes - before.slab_bytes, MIB);
    block = prudence_realloc(block, 20000);
    assert_true(prudence_usable_size(block) < 25000);
    prudence_free(block);
}

SUITE(pin_thread())
