/* SPDX-License-Identifier: MIT */
/*
 * Advice that a program gave about live blocks (madvise) and that lasts: MADV_DONTFORK, DONTDUMP
 * and WIPEONFORK. If it stayed on freed pages, a child of fork could not read the next block there,
 * core files would lack blocks, and each border of advised pages would be one mapping more.
 *
 * The preloaded library sees the program's calls and notes the pages here. Freed pages that have
 * advice stay out of circulation, in `advice_owing`, until advice_undo.c has undone it. Those of
 * runs count as used, a huge mapping is in no bin. Pages without advice cost a test of a pointer or
 * of a flag.
 *
 * Everything is protected by pages_lock.
 */
#include "pages/page_source.h"
#include "pages/pages.h"

struct advice_owing advice_owing = {.runs = {&advice_owing.runs, &advice_owing.runs},
                                    .huge = {&advice_owing.huge, &advice_owing.huge}};

static struct advice *advice_of(struct region *region)
{
    if (!region->advice)
        region->advice = os_meta_alloc(sizeof *region->advice);
    if (region->advice)
        region->advice->region = region;
    return region->advice;
}

/* Notes the pages of the region that the range touches. Without memory nothing is noted, and the
 * advice stays. */
static void note_in_region(struct region *region, const char *start, size_t bytes)
{
    struct advice *advice = advice_of(region);
    size_t first = (size_t)(start - region->base) / OS_PAGE_SIZE;
    size_t end = min_size(region->pages, first + round_up(bytes, os_page_size) / OS_PAGE_SIZE);

    if (advice)
        bits_set_range(advice->given, (unsigned)first, (unsigned)end);
}

void pages_note_advice(const void *pages, const void *start, size_t bytes, unsigned kind)
{
    struct place place;

    os_lock_take(&pages_lock);
    advice_owing.kinds |= kind;
    place = page_index_find(pages);
    if (place.huge)
        place.huge->advised = true;
    else if (place.region)
        note_in_region(place.region, start, bytes);
    os_lock_release(&pages_lock);
}

bool advice_given(const struct region *region, unsigned start, unsigned pages)
{
    unsigned end = start + pages;

    return region->advice && bits_find_set(region->advice->given, start, end) < end;
}

void advice_free(struct region *region)
{
    if (region->advice)
        os_meta_free(region->advice, sizeof *region->advice);
}

bool advice_owe(struct region *region, unsigned start, unsigned pages)
{
    struct advice *advice = region->advice;

    if (!advice_given(region, start, pages))
        return false;
    if (!advice->owed_pages)
        list_append(&advice_owing.runs, &advice->link);
    advice->owed_pages += pages;
    bits_set_range(advice->owed, start, start + pages);
    return true;
}

void advice_owe_huge(struct huge_mapping *huge)
{
    list_append(&advice_owing.huge, &huge->age);
}
