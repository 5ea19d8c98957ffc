// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Allocates the leaves and roots of the page map and sets owners (os_page_map.h).
 *
 * `page_map_lock` is held while a leaf is entered into the root and while the root is replaced, so
 * no leaf is lost. Owners are set in any context in which pages can be allocated and freed.
 */
#include "os_kernel.h"

struct root {
    struct root *before; /* the shorter root that this one replaced */
    void **leaves[];
};

struct os_page_map os_page_map;

static DEFINE_RAW_SPINLOCK(page_map_lock);
static struct root *root;
static void *empty[PAGE_MAP_SLOTS];
static uint64_t bytes_used;

/* Returns the leaf of a page within reach, allocating one if necessary. Returns NULL without
 * memory. */
static void **leaf_of(unsigned long page)
{
    unsigned long number = page >> PAGE_MAP_BITS, flags;
    void **leaf = load_acquire(&load_acquire(&os_page_map.leaves)[number]), **made;

    if (leaf != empty)
        return leaf;
    made = (void **)__get_free_page(GFP_NOWAIT | __GFP_ZERO | __GFP_NOWARN | __GFP_HIGH);
    if (!made)
        return NULL;
    raw_spin_lock_irqsave(&page_map_lock, flags);
    leaf = os_page_map.leaves[number];
    if (leaf == empty)
        store_release(&os_page_map.leaves[number], made);
    raw_spin_unlock_irqrestore(&page_map_lock, flags);
    if (leaf == empty) {
        add_relaxed(&bytes_used, PAGE_SIZE);
        return made;
    }
    free_page((unsigned long)made); /* another thread entered one first */
    return leaf;
}

bool os_page_owner_set(void *pages, size_t bytes, void *owner)
{
    unsigned long first = ((unsigned long)pages - PAGE_OFFSET) >> PAGE_SHIFT;
    unsigned long end = first + (bytes >> PAGE_SHIFT);

    if (end > load_acquire(&os_page_map.reach) << PAGE_MAP_BITS)
        return false;
    for (unsigned long page = first; page < end; page += PAGE_MAP_SLOTS)
        if (!leaf_of(page))
            return false;
    if (!leaf_of(end - 1))
        return false;
    for (unsigned long page = first; page < end; page++)
        store_relaxed(&leaf_of(page)[page & (PAGE_MAP_SLOTS - 1)], owner);
    return true;
}

/* Replaces the root by a longer one. Returns false if the root has become as long already. */
static bool replace(struct root *longer, unsigned long reach)
{
    unsigned long flags, before;

    for (unsigned long i = 0; i < reach; i++)
        longer->leaves[i] = empty;
    raw_spin_lock_irqsave(&page_map_lock, flags);
    before = os_page_map.reach;
    if (before < reach) {
        for (unsigned long i = 0; i < before; i++)
            longer->leaves[i] = os_page_map.leaves[i];
        longer->before = root;
        root = longer;
        store_release(&os_page_map.leaves, longer->leaves);
        store_release(&os_page_map.reach, reach);
    }
    raw_spin_unlock_irqrestore(&page_map_lock, flags);
    return before < reach;
}

bool os_page_map_extend(unsigned long end)
{
    unsigned long last = (unsigned long)__va(PFN_PHYS(end - 1)) - PAGE_OFFSET;
    unsigned long reach = min((last >> PAGE_MAP_SHIFT) + 1, PAGE_MAP_MAX);
    struct root *longer;

    if (reach <= load_acquire(&os_page_map.reach))
        return true;
    longer = kvmalloc(struct_size(longer, leaves, reach), GFP_KERNEL);
    if (!longer)
        return false;
    if (replace(longer, reach))
        add_relaxed(&bytes_used, struct_size(longer, leaves, reach));
    else
        kvfree(longer);
    return true;
}

bool os_page_map_cover(void)
{
    unsigned long end = 1;
    int number;

    for_each_online_node(number) end = max(end, pgdat_end_pfn(NODE_DATA(number)));
    return os_page_map_extend(end);
}

uint64_t os_page_map_bytes(void)
{
    return load_relaxed(&bytes_used);
}

void os_page_map_release(void)
{
    for (unsigned long i = 0; i < os_page_map.reach; i++)
        if (os_page_map.leaves[i] != empty)
            free_page((unsigned long)os_page_map.leaves[i]);
    while (root) {
        struct root *before = root->before;

        kvfree(root);
        root = before;
    }
}
