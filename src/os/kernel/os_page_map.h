/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Page map: from any address to the owner of its page (the slab), in three loads and without trusting
 * the memory around the pointer or any field of struct page (docs/adr/0018). A radix tree over the
 * linear mapping in steps of 1 GiB, 2 MiB and 4 KiB; its tables are single pages but for the root, so
 * that they can be had in any context. They stay until the module goes.
 *
 * Writers and readers as in a process: entries need no order beyond the pages' own hand-over.
 */
#ifndef OS_KERNEL_PAGE_MAP_H
#define OS_KERNEL_PAGE_MAP_H

#include "base/atomic.h"
#include "base/base.h"

#define PAGE_MAP_BITS  9 /* of a table that is one page */
#define PAGE_MAP_SLOTS (1ul << PAGE_MAP_BITS)
#define PAGE_MAP_ROOT  (1ul << 16) /* 64 TiB: all that 4-level page tables reach; beyond, no slabs */

extern void ***os_page_map[PAGE_MAP_ROOT];

/* The owner of the page that `address` lies in; NULL for pages that are not ours. */
static inline void *os_page_owner(const void *address)
{
    unsigned long page = ((unsigned long)address - PAGE_OFFSET) >> PAGE_SHIFT;
    void ***middle, **leaf;

    if (unlikely(page >> (2 * PAGE_MAP_BITS) >= PAGE_MAP_ROOT))
        return NULL;
    middle = load_relaxed(&os_page_map[page >> (2 * PAGE_MAP_BITS)]);
    if (unlikely(!middle))
        return NULL;
    leaf = load_relaxed(&middle[page >> PAGE_MAP_BITS & (PAGE_MAP_SLOTS - 1)]);
    if (unlikely(!leaf))
        return NULL;
    return load_relaxed(&leaf[page & (PAGE_MAP_SLOTS - 1)]);
}

/* Enters `owner` (NULL: none) for every page of the range. False when a table cannot be had, with
 * nothing entered. */
bool os_page_owner_set(void *pages, size_t bytes, void *owner);

#endif /* OS_KERNEL_PAGE_MAP_H */
