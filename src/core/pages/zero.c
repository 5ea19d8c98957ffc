/* SPDX-License-Identifier: MIT */
/*
 * Makes a used block zero (docs/adr/0173). Memory that the program has touched is best cleared, and
 * other memory purged, which costs nothing there. No system call that a program with few calls may
 * make (docs/adr/0123) distinguishes them. But a purge takes much longer where pages are. So of
 * each part a sample is purged twice, and the times are compared. A wrong guess costs time only.
 *
 * Samples stay purged, because clearing them would make them seem touched the next time. Where
 * all parts were touched, the next blocks are cleared without a check, up to STREAK of them; the
 * block after that only has its samples purged, so that the next one decides again.
 */
#include "pages/page_source.h"

#include <string.h>

#define PARTS        4
#define SAMPLE_PAGES 16
#define STREAK       15
#define TOUCHED      3 /* times as long takes a purge at least if pages are there */

uint64_t (*pages_zero_clock)(void) = os_clock_ns;

static uint32_t streak, unsampled; /* blocks; atomic, and only hints */

/* Returns 0 if the system refuses, as for locked memory. */
static uint64_t zero_purge_time(char *pages, size_t bytes)
{
    uint64_t began = pages_zero_clock();

    return mapping_purge(pages, bytes) ? pages_zero_clock() - began + 1 : 0;
}

/* Purges the sample, or clears the pages if the system refuses. Returns whether they were
 * touched. */
static bool zero_sample(char *sample, size_t bytes)
{
    uint64_t first = zero_purge_time(sample, bytes), again = zero_purge_time(sample, bytes);

    if (!again)
        memset(sample, 0, bytes);
    return !again || first > TOUCHED * again;
}

/* Returns whether the part was touched. `purges`: whether a part that was not may be purged. */
static bool zero_part(char *part, size_t bytes, bool purges)
{
    size_t sample = SAMPLE_PAGES * os_page_size;
    size_t at = (bytes - sample) / 2 / os_page_size * os_page_size;

    if (!zero_sample(part + at, sample) && purges && mapping_purge(part, bytes))
        return false;
    memset(part, 0, at);
    memset(part + at + sample, 0, bytes - at - sample);
    return true;
}

/* Returns whether all parts were touched. */
static bool zero_parts(char *memory, size_t bytes, bool purges)
{
    char *first = (char *)round_up((uintptr_t)memory, os_page_size);
    size_t whole = (bytes - (size_t)(first - memory)) & ~(os_page_size - 1);
    size_t part = round_up(whole / PARTS, os_page_size);
    bool touched = true;

    memset(memory, 0, (size_t)(first - memory));
    mapping_purge(first, os_page_size); /* the first one may have to wait for what is not timed */
    for (unsigned i = 0; i < PARTS; i++) {
        char *at = first + i * part;

        touched &= zero_part(at, i < PARTS - 1 ? part : (size_t)(first + whole - at), purges);
    }
    memset(first + whole, 0, (size_t)(memory + bytes - (first + whole)));
    return touched;
}

void os_pages_zero(void *memory, size_t bytes)
{
    uint32_t left = load_relaxed(&unsampled);

    if (left > 1) {
        memset(memory, 0, bytes);
        store_relaxed(&unsampled, left - 1);
    } else if (left) {
        zero_parts(memory, bytes, false);
        store_relaxed(&unsampled, 0u);
    } else {
        bool touched = zero_parts(memory, bytes, true);

        left = touched ? (uint32_t)min_size(2 * load_relaxed(&streak) + 1, STREAK) : 0;
        store_relaxed(&streak, left);
        store_relaxed(&unsampled, left);
    }
}
