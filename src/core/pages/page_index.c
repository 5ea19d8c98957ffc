/* SPDX-License-Identifier: MIT */
/*
 * The page source's index maps each 2 MiB of address space to the region that lies there or the
 * huge mapping that begins there. It is a table of leaves; a leaf covers 16 GiB and is never
 * unmade. Leaves are entered without the lock (page_index_prepare), everything else happens under
 * pages_lock.
 */
#include "base/checked.h"
#include "pages/page_source.h"

#define UNIT_SHIFT   21
#define LEAF_SHIFT   13 /* log2 of the entries of a leaf */
#define LEAF_ENTRIES ((size_t)1 << LEAF_SHIFT)
#define LEAVES       ((size_t)1 << (PAGE_MAP_ADDRESS_BITS - UNIT_SHIFT - LEAF_SHIFT))
#define IS_SPAN      ((uintptr_t)1)

_Static_assert((size_t)1 << UNIT_SHIFT == HUGE_MAPPING_ALIGNMENT,
               "one entry for each possible beginning");

static uintptr_t *leaves[LEAVES];

static uintptr_t unit_of(const void *pages)
{
    return (uintptr_t)pages >> UNIT_SHIFT;
}

static bool leaf_prepare(size_t number)
{
    size_t bytes = LEAF_ENTRIES * sizeof(uintptr_t);
    uintptr_t *none = NULL, *leaf;

    if (load_acquire(&leaves[number]))
        return true;
    leaf = os_meta_alloc(bytes);
    if (leaf && !compare_exchange(&leaves[number], &none, leaf))
        os_meta_free(leaf, bytes); /* another thread was first */
    return leaf != NULL;
}

bool page_index_prepare(const void *base, size_t bytes)
{
    uintptr_t last; /* a number, because callers also pass ranges that no process can have */

    if (!checked_add((uintptr_t)base, bytes - 1, &last))
        return false;
    last >>= UNIT_SHIFT + LEAF_SHIFT;
    if (last >= LEAVES)
        return false;
    for (uintptr_t number = unit_of(base) >> LEAF_SHIFT; number <= last; number++)
        if (!leaf_prepare(number))
            return false;
    return true;
}

static uintptr_t *page_index_entry_of(const void *pages)
{
    uintptr_t unit = unit_of(pages);
    uintptr_t *leaf =
        unit >> LEAF_SHIFT < LEAVES ? load_acquire(&leaves[unit >> LEAF_SHIFT]) : NULL;

    return leaf ? &leaf[unit & (LEAF_ENTRIES - 1)] : NULL;
}

void page_index_set_region(const struct region *region, bool there)
{
    size_t bytes = region->window ? REGION_SIZE : region->pages * OS_PAGE_SIZE;

    for (size_t at = 0; at < bytes; at += HUGE_MAPPING_ALIGNMENT)
        *page_index_entry_of(region->base + at) = there ? (uintptr_t)region : 0;
}

void page_index_set_huge_mapping(const struct huge_mapping *huge, bool there)
{
    *page_index_entry_of(huge->base) = there ? (uintptr_t)huge | IS_SPAN : 0;
}

struct place page_index_find(const void *pages)
{
    const uintptr_t *entry = page_index_entry_of(pages);
    uintptr_t value = entry ? *entry : 0;

    if (value & IS_SPAN)
        return (struct place){.huge = (struct huge_mapping *)(value & ~IS_SPAN)};
    return (struct place){.region = (struct region *)value};
}
