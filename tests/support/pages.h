/* SPDX-License-Identifier: MIT */
/* What the tests of the page source have in common: its figures, and a clock of their own. */
#ifndef TESTS_SUPPORT_PAGES_H
#define TESTS_SUPPORT_PAGES_H

#include "pages/page_source.h"
#include "support/slab_test.h"

#define MIB ((size_t)1 << 20)

static uint64_t now = 1; /* ns; goes on when the test says so */

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

/* A setup: nothing is free, whatever is freed is kept, and the first regions are as large as all others. */
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
