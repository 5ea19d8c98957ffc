/* SPDX-License-Identifier: MIT */
/* Slow side of the page map: makes leaves and enters owners (see os_page_map.h). */
#include "mapping.h"

void **os_page_map[PAGE_MAP_LEAVES];

static bool leaf_make(size_t index)
{
    size_t bytes = PAGE_MAP_LEAF_PAGES * sizeof(void *);
    void **none = NULL;
    void **leaf;

    if (injected_failure())
        return false;
    leaf = mapping_make_own_sparse(bytes);
    if (!leaf)
        return false;
    if (!compare_exchange(&os_page_map[index], &none, leaf))
        mapping_unmake_own(leaf, bytes); /* another thread was first */
    return true;
}

bool os_page_owner_prepare(const void *pages, size_t bytes)
{
    uintptr_t first = (uintptr_t)pages >> PAGE_MAP_LEAF_SHIFT;
    uintptr_t last = ((uintptr_t)pages + bytes - 1) >> PAGE_MAP_LEAF_SHIFT;

    if (last >= PAGE_MAP_LEAVES)
        return false;
    for (uintptr_t leaf = first; leaf <= last; leaf++)
        if (!load_acquire(&os_page_map[leaf]) && !leaf_make(leaf))
            return false;
    return true;
}

/* Takes most of the time of allocating and freeing a large block. */
static void entries_set(void **entry, size_t count, void *owner)
{
#pragma GCC unroll 8
    for (size_t i = 0; i < count; i++)
        store_release(&entry[i], owner); /* pairs with os_page_owner_next */
}

bool os_page_owner_set(void *pages, size_t bytes, void *owner)
{
    uintptr_t page = (uintptr_t)pages >> PAGE_MAP_PAGE_SHIFT;
    size_t count = bytes >> PAGE_MAP_PAGE_SHIFT;

    if (!os_page_owner_prepare(pages, bytes))
        return false;
    while (count) {
        size_t first = page % PAGE_MAP_LEAF_PAGES;
        size_t here = min_size(count, PAGE_MAP_LEAF_PAGES - first);

        entries_set(load_relaxed(&os_page_map[page / PAGE_MAP_LEAF_PAGES]) + first, here, owner);
        page += here;
        count -= here;
    }
    return true;
}

void *os_page_owner_next(uintptr_t *address, uintptr_t end)
{
    uintptr_t page = *address >> PAGE_MAP_PAGE_SHIFT;
    uintptr_t last = min_size(end >> PAGE_MAP_PAGE_SHIFT, PAGE_MAP_LEAVES * PAGE_MAP_LEAF_PAGES);
    void *owner = NULL;

    while (!owner && page < last) {
        void **leaf = load_acquire(&os_page_map[page / PAGE_MAP_LEAF_PAGES]);

        if (leaf)
            owner = load_acquire(&leaf[page % PAGE_MAP_LEAF_PAGES]);
        if (!owner)
            page = leaf ? page + 1 : (page / PAGE_MAP_LEAF_PAGES + 1) * PAGE_MAP_LEAF_PAGES;
    }
    /* Past the end *address stays, because an owner found before may reach over that end. */
    if (*address < end)
        *address = min_size(page, last) << PAGE_MAP_PAGE_SHIFT;
    return owner;
}
