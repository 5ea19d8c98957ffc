/* SPDX-License-Identifier: MIT */
/*
 * Resizing pages: runs grow into free neighbours, and huge mappings into reserved address space or
 * by moving page tables. Both shrink in place. Contents stay, the page map names the owner for
 * exactly these pages, and a failure at any call changes nothing.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include <sys/mman.h>

#include "support/owned_pages.h"

#define PAGE os_page_size

static void write_numbers(char *block, size_t from, size_t to)
{
    for (size_t at = from; at < to; at += PAGE)
        *(size_t *)(block + at) = at;
}

static void assert_owned(const char *block, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += PAGE) {
        assert_int_equal(*(const size_t *)(block + at), at);
        assert_ptr_equal(os_page_owner(block + at), &owner);
    }
    assert_ptr_not_equal(os_page_owner(block + bytes), &owner);
}

TEST(runs_grow_into_free_pages)
{
    char *run = take(10 * PAGE), *next = take(10 * PAGE);

    assert_ptr_equal(next, run + 10 * PAGE);
    write_numbers(run, 0, 10 * PAGE);
    assert_null(os_pages_resize(run, 10 * PAGE, 11 * PAGE, &owner));
    assert_int_equal(pages().used, 20 * PAGE);
    give(next, 10 * PAGE);
    assert_ptr_equal(os_pages_resize(run, 10 * PAGE, 15 * PAGE, &owner), run);
    write_numbers(run, 10 * PAGE, 15 * PAGE);
    assert_owned(run, 15 * PAGE);
    assert_int_equal(pages().used, 15 * PAGE);
    assert_int_equal(pages().retained, 5 * PAGE);
    next = take(PAGE);
    assert_ptr_equal(next, run + 15 * PAGE);
    give(next, PAGE);
    assert_ptr_equal(os_pages_resize(run, 15 * PAGE, REGION_SIZE, &owner), run);
    write_numbers(run, 0, REGION_SIZE);
    assert_owned(run, REGION_SIZE);
    give(run, REGION_SIZE);
}

TEST(runs_shrink_in_place)
{
    char *run = take(100 * PAGE), *next;

    write_numbers(run, 0, 100 * PAGE);
    assert_ptr_equal(os_pages_resize(run, 100 * PAGE, 40 * PAGE, &owner), run);
    assert_owned(run, 40 * PAGE);
    assert_int_equal(pages().used, 40 * PAGE);
    next = take(60 * PAGE);
    assert_ptr_equal(next, run + 40 * PAGE);
    give(next, 60 * PAGE);
    give(run, 40 * PAGE);
}

/* A growing run becomes a huge mapping with its memory. The remaining pages are free and clean. */
TEST(a_run_that_grows_becomes_a_huge_mapping)
{
    char *run, *next, *huge;
    bool zeroed;

    os_pages_trim();
    run = take(3 * MIB);
    next = take(PAGE);
    write_numbers(run, 0, 3 * MIB);
    assert_non_null(page_index_find(run).region);
    huge = os_pages_resize(run, 3 * MIB, 4 * MIB, &owner);
    if (!huge)
        skip(); /* a system without MREMAP_DONTUNMAP copies */
    assert_ptr_equal(page_index_find(huge).huge->base, huge);
    assert_ptr_not_equal(os_page_owner(run), &owner);
    write_numbers(huge, 3 * MIB, 4 * MIB);
    assert_owned(huge, 4 * MIB);
    assert_int_equal(pages().used, 4 * MIB + PAGE);
    assert_int_equal(pages().retained, 0);
    give(next, PAGE);
    next = os_pages_alloc(MIB, PAGE, 0, &zeroed);
    assert_ptr_equal(next, run);
    assert_true(zeroed);
    for (size_t at = 0; at < MIB; at += PAGE)
        assert_int_equal(next[at], 0);
    os_pages_free(next, MIB);
    give(huge, 4 * MIB);
    huge = take(3 * MIB); /* a free huge mapping serves any block of its size */
    assert_ptr_equal(page_index_find(huge).huge->base, huge);
    give(huge, 3 * MIB);
    os_pages_trim();
}

TEST(huge_mappings_grow_and_shrink)
{
    size_t bytes = 3 * MIB;
    char *huge = take(bytes), *below[40];
    unsigned moves = 0;

    write_numbers(huge, 0, bytes);
    for (unsigned i = 0; i < 40; i++) { /* with another block after it */
        char *moved;
        size_t wanted = bytes + (i % 7 + 1) * 300 * PAGE;

        below[i] = take(2 * MIB + PAGE);
        moved = os_pages_resize(huge, bytes, wanted, &owner);
        assert_non_null(moved);
        assert_int_equal((uintptr_t)moved % (2 * MIB), 0);
        moves += moved != huge;
        if (moved != huge)
            assert_ptr_not_equal(os_page_owner(huge), &owner);
        huge = moved;
        write_numbers(huge, bytes, wanted);
        bytes = wanted;
        assert_owned(huge, bytes);
        assert_int_equal(pages().used, bytes + (i + 1) * (2 * MIB + PAGE));
    }
    assert_in_range(moves, 1, 20); /* the reserve spares the others */
    while (bytes > MIB) {
        assert_ptr_equal(os_pages_resize(huge, bytes, round_up(bytes / 3 * 2, PAGE), &owner), huge);
        bytes = round_up(bytes / 3 * 2, PAGE);
        assert_owned(huge, bytes);
        assert_int_equal(pages().used, bytes + 40 * (2 * MIB + PAGE));
    }
    huge = os_pages_resize(huge, bytes, 30 * MIB, &owner);
    assert_non_null(huge);
    give(huge, 30 * MIB);
    for (unsigned i = 0; i < 40; i++)
        give(below[i], 2 * MIB + PAGE);
    assert_int_equal(pages().used, 0);
}

/* A mapping with protected pages cannot be moved as one. */
TEST(what_cannot_be_moved_stays)
{
    char *huge = take(8 * MIB), *moved;
    struct os_pages_stats before = pages();

    write_numbers(huge, 0, 8 * MIB);
    assert_int_equal(mprotect(huge + 3 * MIB, PAGE, PROT_READ), 0);
    moved = os_pages_resize(huge, 8 * MIB, 64 * MIB, &owner);
    if (moved) { /* a newer system, or room after it */
        huge = moved;
        assert_int_equal(mprotect(huge + 3 * MIB, PAGE, PROT_READ | PROT_WRITE), 0);
        assert_ptr_equal(os_pages_resize(huge, 64 * MIB, 8 * MIB, &owner), huge);
    } else {
        assert_int_equal(pages().used, before.used);
        assert_int_equal(mprotect(huge + 3 * MIB, PAGE, PROT_READ | PROT_WRITE), 0);
    }
    assert_owned(huge, 8 * MIB);
    give(huge, 8 * MIB);
}

/* Makes all calls from each number on fail. The block must stay as it was. */
static void failures_change_nothing(size_t bytes, size_t wanted)
{
    for (unsigned first = 0; first < 10; first++) {
        char *block = take(bytes), *resized;
        struct os_pages_stats before = pages(), after;

        write_numbers(block, 0, bytes);
        memory_fail(first, UINT32_MAX);
        resized = os_pages_resize(block, bytes, wanted, &owner);
        memory_succeed();
        after = pages();
        if (resized) {
            assert_ptr_equal(os_page_owner(resized + wanted - PAGE), &owner);
            assert_int_equal(*(size_t *)(resized + bytes - PAGE), bytes - PAGE);
            give(resized, wanted);
        } else {
            assert_int_equal(after.used, before.used);
            assert_owned(block, bytes);
            give(block, bytes);
        }
        assert_true(first > 0 || !resized);
    }
    os_pages_trim();
    assert_int_equal(pages().used + pages().retained, 0);
}

TEST(failures)
{
    failures_change_nothing(10 * PAGE, 20 * PAGE);
    failures_change_nothing(4 * MIB, 9 * MIB);
    failures_change_nothing(4 * MIB, 3000 * MIB); /* new leaves of page map and index */
    failures_change_nothing(4 * MIB, 20000 * MIB);
}

/* Makes the first region as large as all others. */
SUITE(region_small = 0, os_pages_set_retain(16 * MIB))
