/* SPDX-License-Identifier: MIT */
/*
 * A run is taken where dirty pages are. When memory falls, the lower regions are unmapped, and made
 * anew later, before the one that stayed. A first fit would then leave pages of that one dirty and
 * unused, and touch clean ones.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "support/pages.h"

#define RUNS      1433
#define RUN_BYTES ((size_t)100 << 10) /* or some more: 140 MB in three regions */

static char *runs[RUNS];

TEST(dirty_pages_are_taken_first)
{
    size_t bytes = round_up(RUN_BYTES, os_page_size);

    posix_clock_injected = our_clock;
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < RUNS; i++) {
            runs[i] = os_pages_alloc(bytes, os_page_size, 0, NULL);
            assert_non_null(runs[i]);
        }
        assert_true(pages().retained <= 16 * MIB);
        for (unsigned i = 0; i < RUNS; i++)
            os_pages_free(runs[i], bytes);
    }
}

SUITE()
