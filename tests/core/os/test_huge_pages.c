/* SPDX-License-Identifier: MIT */
/*
 * Option huge_pages: later regions and mappings ask for pages of 2 MiB, except for the first, small
 * regions. Without the option, none does.
 *
 * ctest: not-with thread (one thread)
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/pages.h"

static int end(void **state)
{
    os_pages_set_huge(false);
    os_pages_trim();
    return 0;
}

static bool system_has_huge_pages(void)
{
    return access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0;
}

/* Returns whether the mapping at `at` asks for huge pages, from the flag "hg" in
 * /proc/self/smaps. */
static bool asks_for_huge_pages(const void *at)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[4096];
    bool here = false, asks = false;

    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        uintptr_t first, end_of_it;

        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &first, &end_of_it) == 2)
            here = (uintptr_t)at >= first && (uintptr_t)at < end_of_it;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            asks = strstr(line, " hg") != NULL;
    }
    fclose(file);
    return asks;
}

static void asked_for(size_t bytes, bool wanted)
{
    char *pages = os_pages_alloc(bytes, OS_PAGE_SIZE, 0, NULL);

    assert_non_null(pages);
    assert_int_equal(asks_for_huge_pages(pages), wanted);
    os_pages_free(pages, bytes);
    os_pages_trim();
}

TEST(by_the_option_only, begin_with_everything_kept, end)
{
    if (!system_has_huge_pages())
        skip();
    asked_for(MIB, false);
    asked_for(40 * MIB, false);
    os_pages_set_huge(true);
    asked_for(MIB, true);
    asked_for(40 * MIB, true);
}

TEST(not_in_small_regions, begin_with_everything_kept, end)
{
    region_small = REGION_SMALL;
    os_pages_set_huge(true);
    asked_for(MIB / 2, false);
}

/* A part of a huge page that was purged is zero when reused. */
TEST(parts_go_back, begin_with_everything_kept, end)
{
    char *first, *second;
    bool zeroed;

    os_pages_set_huge(true);
    first = os_pages_alloc(MIB, OS_PAGE_SIZE, 0, NULL);
    second = os_pages_alloc(MIB, OS_PAGE_SIZE, 0, NULL);
    memset(first, 1, MIB);
    memset(second, 2, MIB);
    os_pages_free(first, MIB);
    assert_int_equal(os_pages_trim(), MIB);
    first = os_pages_alloc(MIB, OS_PAGE_SIZE, 0, &zeroed);
    assert_true(zeroed);
    for (size_t i = 0; i < MIB; i++) {
        assert_int_equal(first[i], 0);
        assert_int_equal(second[i], 2);
    }
    os_pages_free(first, MIB);
    os_pages_free(second, MIB);
}

SUITE()
