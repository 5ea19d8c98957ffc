/* SPDX-License-Identifier: MIT */
/*
 * The option limit bounds the pages that slabs and large blocks hold, including those kept for
 * reuse. Kept pages go back to the system before an allocation fails.
 *
 * ctest: inlined-too
 * ctest: small-pages (counts blocks and margins under a limit)
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

#define MIB ((size_t)1 << 20)

static struct os_pages_stats pages(void)
{
    struct os_pages_stats stats;

    os_pages_stats(&stats);
    return stats;
}

TEST(kept_pages_count)
{
    void *block, *large;

    assert_int_equal(prudence_option_set("retain", "8M"), 0);
    block = prudence_malloc(MIB);
    assert_non_null(block);
    prudence_free(block);
    assert_true(pages().retained >= MIB);
    assert_int_equal(prudence_option_set("limit", "4M"), 0);
    large = prudence_malloc(4 * MIB - 65536); /* does not fit in addition to the kept pages */
    assert_non_null(large);
    assert_true(pages().used + pages().retained <= 4 * MIB);
    prudence_free(large);
}

TEST(no_more_than_the_limit)
{
    void *blocks[64];
    unsigned held = 0;

    prudence_trim();
    while ((blocks[held] = prudence_malloc(MIB / 4)))
        held++;
    assert_int_equal(errno, ENOMEM);
    assert_true(held >= 14 && held <= 16);
    assert_true(pages().used <= 4 * MIB);
    prudence_free(blocks[--held]);
    blocks[held] = prudence_malloc(MIB / 4);
    assert_non_null(blocks[held++]);
    assert_int_equal(prudence_option_set("limit", "0"), 0);
    while (held)
        prudence_free(blocks[--held]);
}

SUITE(pin_thread())
