/* SPDX-License-Identifier: MIT */
/* Common parts of the page source's tests: statistics, and an injected clock. */
#ifndef TESTS_SUPPORT_PAGES_H
#define TESTS_SUPPORT_PAGES_H

#include "pages/page_source.h"
#include "support/slab_test.h"

#define MIB ((size_t)1 << 20)

static uint64_t now = 1; /* ns; advanced by the test */

static inline uint64_t our_clock(void)
{
    return now;
}

static inline struct os_pages_stats pages(void)
{
    struct os_pages_stats stats;

    os_pages_stats(&stats);
    return stats;
}

/* Sets up a test: no page is free, all freed pages are kept, and the first regions are
 * full-sized. */
static inline int begin_with_everything_kept(void **state)
{
    (void)state;
    region_small = 0;
    posix_clock_injected = our_clock;
    os_pages_set_retain((uint64_t)1 << 40);
    os_pages_trim();
    return 0;
}

#endif /* TESTS_SUPPORT_PAGES_H */
