/* SPDX-License-Identifier: MIT */
/*
 * Page map: finds the owner of any address's page (the slab), without trusting any memory near
 * the pointer. A table has 2^17 leaves (2^18 on aarch64). Each leaf covers 1 GiB with one word per
 * 4 KiB page, is mapped when first needed and never unmapped. The system adds a leaf's pages when
 * they are first written, so the map costs 8 bytes per owned page of small slabs.
 *
 * A large block would need many words. So an owner has one word for each 2 MiB chunk and for each
 * whole GiB of a range, and words of pages only for the rest at both ends and for the first
 * page (docs/adr/0172). Objects are looked up by the word of their page alone, in two loads: a slab
 * of several objects covers no chunk, and a slab of one enters the page of that object.
 *
 * The owner of pages writes their entries before another thread can get an address in them, so a
 * lookup needs no order beyond that hand-over. A lookup of a wild pointer may race with any write,
 * and reads one whole word, old or new. A walk over all owners has no address to start from, so
 * entries are stored with release order (on x86-64 the same instruction).
 */
#ifndef OS_POSIX_PAGE_MAP_H
#define OS_POSIX_PAGE_MAP_H

#include "base/atomic.h"
#include "base/base.h"

#define PAGE_MAP_PAGE_SHIFT  12
#define PAGE_MAP_CHUNK_SHIFT 21
#define PAGE_MAP_LEAF_SHIFT  30
#if defined(__aarch64__)
#define PAGE_MAP_ADDRESS_BITS 48 /* most that mmap uses by default */
#else
#define PAGE_MAP_ADDRESS_BITS 47
#endif
#define PAGE_MAP_LEAVES     ((size_t)1 << (PAGE_MAP_ADDRESS_BITS - PAGE_MAP_LEAF_SHIFT))
#define PAGE_MAP_LEAF_PAGES ((size_t)1 << (PAGE_MAP_LEAF_SHIFT - PAGE_MAP_PAGE_SHIFT))
#define PAGE_MAP_CHUNK      ((size_t)1 << PAGE_MAP_CHUNK_SHIFT)

/* A leaf has words of pages, then words of chunks. */
extern HIDDEN void **os_page_map[PAGE_MAP_LEAVES];
extern HIDDEN void **os_page_map_whole; /* owners of whole GiB; NULL before there is one */

/* Returns the owner of the page in which an object of ours begins; perhaps NULL for others. */
static inline void *os_page_owner_of_object(const void *address)
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

/* The same for any address, by the words of chunks and GiB. */
void *os_page_owner_by_chunk(const void *address);

/* Returns the owner of the page that contains `address`, or NULL if the page is not ours. */
static inline void *os_page_owner(const void *address)
{
    void *owner = os_page_owner_of_object(address);

    return likely(owner) ? owner : os_page_owner_by_chunk(address);
}

/* Returns the start of the map, for code outside the library that looks up addresses
 * (<prudence/inline.h>). */
static inline const void *os_page_map_root(void)
{
    return os_page_map;
}

/* Makes the leaves for the range, so that entering owners there cannot fail afterwards. */
bool os_page_owner_prepare(const void *pages, size_t bytes);

/* Enters `owner` (NULL for none) for a range, which has no owner or is exactly that of one. Returns
 * false, with nothing entered, if a leaf cannot be made. */
bool os_page_owner_set(void *pages, size_t bytes, void *owner);

/* Changes the range of an owner. Leaves for the new one exist. A page in both ranges has the owner
 * all the time. */
void os_page_owner_resize(void *pages, size_t bytes, void *new_pages, size_t new_bytes,
                          void *owner);

/* Returns the owner of the first page from *address to `end` that has a word of its own, and sets
 * *address to that page. So ranges that begin there are found. One that begins before *address is
 * perhaps not found: os_page_owner() finds it. Returns NULL if there is none, with *address at
 * `end` or at the end of all addresses. *address never goes back. Acquire, so the caller sees how
 * the owner was initialized. The caller must keep the owner from going away. */
void *os_page_owner_next(uintptr_t *address, uintptr_t end);

#endif /* OS_POSIX_PAGE_MAP_H */
