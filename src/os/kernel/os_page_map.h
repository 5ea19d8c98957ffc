/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Page map: from any address to the owner of its page (the slab), in two loads and without trusting
 * the memory around the pointer or any field of struct page (docs/adr/0018). A root with a pointer for
 * each 2 MiB of the linear mapping, as far as there is memory, and leaves of a page, which can be had in
 * any context. Where there is no leaf the root points to one that is empty, which saves a test.
 *
 * When memory is plugged in the root is replaced by a longer one. Old roots stay until the module goes,
 * as leaves do: a reader may still use one, and finds there all objects that were handed out before it
 * was replaced.
 *
 * Writers and readers as in a process: entries need no order beyond the pages' own hand-over.
 */
#ifndef OS_KERNEL_PAGE_MAP_H
#define OS_KERNEL_PAGE_MAP_H

#include "base/atomic.h"
#include "base/base.h"

#define PAGE_MAP_BITS  9 /* of a leaf, which is one page */
#define PAGE_MAP_SLOTS (1ul << PAGE_MAP_BITS)
#define PAGE_MAP_SHIFT (PAGE_SHIFT + PAGE_MAP_BITS)
#define PAGE_MAP_MAX   (1ul << 25) /* leaves: 64 TiB; beyond, no slabs */

struct os_page_map {
    unsigned long reach; /* leaves; written after `leaves` */
    void ***leaves;
};
extern struct os_page_map os_page_map;

/*
 * Of a live object's page neither entry changes: they were written before it was handed out. What READ_ONCE() promises without its volatile, with which compilers do not
 * scale an index within the load: an instruction more for each.
 */
static inline void *os_page_map_entry(void *const *table, unsigned long number)
{
    /* Of another pointer than a live object's, either value will do. */
    void *entry = data_race(table[number]);

    OPTIMIZER_HIDE_VAR(entry); /* loaded once */
    return entry;
}

/* The owner of the page that `address` lies in; NULL for pages that are not ours. */
static inline void *os_page_owner(const void *address)
{
    unsigned long offset = (unsigned long)address - PAGE_OFFSET;
    void **leaf;

    if (unlikely(offset >> PAGE_MAP_SHIFT >= load_acquire(&os_page_map.reach)))
        return NULL;
    leaf = os_page_map_entry((void *const *)load_relaxed(&os_page_map.leaves),
                             offset >> PAGE_MAP_SHIFT);
    return os_page_map_entry(leaf, offset >> PAGE_SHIFT & (PAGE_MAP_SLOTS - 1));
}

/* Nothing outside of the module looks things up in it. */
static inline const void *os_page_map_root(void)
{
    return NULL;
}

/* Enters `owner` (NULL: none) for every page of the range. False when a leaf cannot be had, with
 * nothing entered. */
bool os_page_owner_set(void *pages, size_t bytes, void *owner);

#endif /* OS_KERNEL_PAGE_MAP_H */
