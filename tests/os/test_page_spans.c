/* SPDX-License-Identifier: MIT */
/*
 * Spans: aligned to huge pages; a freed one serves the next request that it fits, the smallest first;
 * what is too much of it is split off or cut; a smaller one is grown without copying.
 */
#include <sys/mman.h>

#include "support/pages.h"

static char *take(size_t bytes, bool *zeroed)
{
    char *span = os_pages_alloc(bytes, OS_PAGE_SIZE, 0, zeroed);

    assert_non_null(span);
    return span;
}

static void they_begin_at_huge_pages(void **state)
{
    char *spans[20];

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        spans[i] = take(2 * MIB + (i + 1) * 37 * OS_PAGE_SIZE, NULL);
        assert_int_equal((uintptr_t)spans[i] % (2 * MIB), 0);
        assert_ptr_equal(index_find(spans[i]).span->base, spans[i]);
    }
    for (unsigned i = 0; i < 20; i++)
        os_pages_free(spans[i], 2 * MIB + (i + 1) * 37 * OS_PAGE_SIZE);
    assert_int_equal(pages().used, 0);
}

static void larger_alignments(void **state)
{
    (void)state;
    for (size_t alignment = 4 * MIB; alignment <= 64 * MIB; alignment *= 2) {
        char *small = os_pages_alloc(OS_PAGE_SIZE, alignment, 0, NULL);
        char *large = os_pages_alloc(5 * MIB, alignment, 0, NULL);

        assert_int_equal((uintptr_t)small % alignment, 0);
        assert_int_equal((uintptr_t)large % alignment, 0);
        memset(small, 1, OS_PAGE_SIZE);
        memset(large, 1, 5 * MIB);
        os_pages_free(small, OS_PAGE_SIZE);
        os_pages_free(large, 5 * MIB);
    }
}

static void the_smallest_that_fits(void **state)
{
    char *three = take(3 * MIB, NULL), *four = take(4 * MIB, NULL), *nine = take(9 * MIB, NULL);
    bool zeroed;

    (void)state;
    memset(three, 1, 3 * MIB);
    os_pages_free(nine, 9 * MIB);
    os_pages_free(three, 3 * MIB);
    os_pages_free(four, 4 * MIB);
    assert_ptr_equal(take(4 * MIB, NULL), four);
    assert_ptr_equal(take(3 * MIB, &zeroed), three);
    assert_false(zeroed);
    assert_ptr_equal(take(9 * MIB, NULL), nine);
    os_pages_free(nine, 9 * MIB);
    os_pages_free(three, 3 * MIB);
    os_pages_free(four, 4 * MIB);
}

static void a_much_larger_one_is_split(void **state)
{
    char *large = take(64 * MIB, NULL), *front, *rest;

    (void)state;
    memset(large, 1, 64 * MIB);
    os_pages_free(large, 64 * MIB);
    front = take(4 * MIB, NULL);
    assert_ptr_equal(front, large);
    assert_int_equal(pages().used, 4 * MIB);
    assert_int_equal(pages().retained, 60 * MIB);
    rest = take(60 * MIB, NULL);
    assert_ptr_equal(rest, large + 4 * MIB);
    os_pages_free(front, 4 * MIB);
    os_pages_free(rest, 60 * MIB);
    assert_int_equal(os_pages_trim(), 64 * MIB);
}

/* Up to an eighth more is left to the user, and counted; more is given back. */
static void what_is_too_much_is_cut(void **state)
{
    char *span = take(4 * MIB, NULL);
    unsigned char resident[256];

    (void)state;
    memset(span, 1, 4 * MIB);
    os_pages_free(span, 4 * MIB);
    assert_ptr_equal(take(4 * MIB - 4 * OS_PAGE_SIZE, NULL), span);
    assert_int_equal(pages().used, 4 * MIB);
    os_pages_free(span, 4 * MIB - 4 * OS_PAGE_SIZE);
    assert_int_equal(pages().retained, 4 * MIB);
    assert_ptr_equal(take(3 * MIB, NULL), span);
    assert_int_equal(pages().used, 3 * MIB);
    assert_int_equal(pages().retained, 0);
    assert_int_equal(mincore(span + 3 * MIB, MIB, resident), 0);
    for (unsigned i = 0; i < 256; i++)
        assert_false(resident[i] & 1);
    os_pages_free(span, 3 * MIB);
}

static void a_smaller_one_is_grown(void **state)
{
    char *span = take(8 * MIB, NULL), *grown;
    bool zeroed;

    (void)state;
    memset(span, 7, 8 * MIB);
    os_pages_free(span, 8 * MIB);
    grown = take(12 * MIB, &zeroed);
    assert_false(zeroed);
    for (size_t i = 0; i < 12 * MIB; i += OS_PAGE_SIZE) /* its pages, and new ones */
        assert_int_equal(grown[i], i < 8 * MIB ? 7 : 0);
    assert_int_equal(pages().used, 12 * MIB);
    assert_int_equal(pages().retained, 0);
    os_pages_free(grown, 12 * MIB);
}

static void the_limit_counts_free_ones(void **state)
{
    char *span = take(8 * MIB, NULL), *other;

    (void)state;
    os_pages_set_limit(12 * MIB);
    os_pages_free(span, 8 * MIB);
    other = take(10 * MIB, NULL);
    assert_true(pages().used + pages().retained <= 12 * MIB);
    assert_null(os_pages_alloc(3 * MIB, OS_PAGE_SIZE, 0, NULL));
    os_pages_free(other, 10 * MIB);
    other = take(12 * MIB, NULL); /* what is free counts as what can be had */
    assert_null(os_pages_resize(other, 12 * MIB, 13 * MIB, NULL));
    os_pages_free(other, 12 * MIB);
    os_pages_set_limit(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(they_begin_at_huge_pages, begin_with_everything_kept),
        cmocka_unit_test_setup(larger_alignments, begin_with_everything_kept),
        cmocka_unit_test_setup(the_smallest_that_fits, begin_with_everything_kept),
        cmocka_unit_test_setup(a_much_larger_one_is_split, begin_with_everything_kept),
        cmocka_unit_test_setup(what_is_too_much_is_cut, begin_with_everything_kept),
        cmocka_unit_test_setup(a_smaller_one_is_grown, begin_with_everything_kept),
        cmocka_unit_test_setup(the_limit_counts_free_ones, begin_with_everything_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
