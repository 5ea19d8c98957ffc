/* SPDX-License-Identifier: MIT */
/*
 * Page map: from any address to the owner of its page (the slab), in two loads and without
 * trusting any memory around the pointer. A table of 2^17 leaves (2^18 on aarch64), each of which
 * covers 1 GiB with one word a 4 KiB page; leaves are mapped when first needed, their pages when first
 * written, so the cost is 8 bytes for each page owned. Leaves are never unmapped.
 *
 * Writers: the owner of the pages, before an address in them can reach another thread, so lookups by an address
 * need no order of their own beyond that hand-over; a lookup of a wild pointer may race with any
 * of it and reads one whole word, the old or the new. A walk over all owners has no address: for it entries are
 * stored with release order (on x86-64 the same instruction).
 */
#ifndef OS_POSIX_PAGE_MAP_H
#define OS_POSIX_PAGE_MAP_H

#include "base/atomic.h"
#include "base/base.h"

#define PAGE_MAP_PAGE_SHIFT 12
#define PAGE_MAP_LEAF_SHIFT 30
#if defined(__aarch64__)
#define PAGE_MAP_ADDRESS_BITS 48 /* what mmap gives without being asked for more */
#else
#define PAGE_MAP_ADDRESS_BITS 47
#endif
#define PAGE_MAP_LEAVES     ((size_t)1 << (PAGE_MAP_ADDRESS_BITS - PAGE_MAP_LEAF_SHIFT))
#define PAGE_MAP_LEAF_PAGES ((size_t)1 << (PAGE_MAP_LEAF_SHIFT - PAGE_MAP_PAGE_SHIFT))

extern HIDDEN void **os_page_map[PAGE_MAP_LEAVES];

/* The owner of the page that `address` lies in; NULL for pages that are not ours. */
static inline void *os_page_owner(const void *address)
{
    uintptr_t number = (uintptr_t)address;
    void **leaf;

    if (unlikely(number >> PAGE_MAP_LEAF_SHIFT >= PAGE_MAP_LEAVES))
        return NULL;
    leaf = load_relaxed(&os_page_map[number >> PAGE_MAP_LEAF_SHIFT]);
    if (unlikely(!leaf))
        return NULL;
    return load_relaxed(&leaf[number >> PAGE_MAP_PAGE_SHIFT & (PAGE_MAP_LEAF_PAGES - 1)]);
}

/* Where the map begins, for code outside of the library that looks things up in it (<prudence/inline.h>). */
static inline const void *os_page_map_root(void)
{
    return os_page_map;
}

/* Makes what is needed for entering owners in the range: it cannot fail afterwards. */
bool os_page_owner_prepare(const void *pages, size_t bytes);

/* Enters `owner` (NULL: none) for every page of the range. False when a leaf cannot be had, with
 * nothing entered. */
bool os_page_owner_set(void *pages, size_t bytes, void *owner);

/* The owner of the first page from *address on, below `end`, that has one; *address is then that page's, else `end` or the end of
 * all addresses; it never goes back. Acquire: what the owner was made of. It is the caller's business that it does not go. NULL:
 * none. */
void *os_page_owner_next(uintptr_t *address, uintptr_t end);

#endif /* OS_POSIX_PAGE_MAP_H */
