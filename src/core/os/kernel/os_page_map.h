/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The page map leads from any address to the owner of the page (the slab) in two loads, and trusts
 * neither the memory around the pointer nor any field of struct page (docs/adr/0018). The root has
 * a pointer for each 2 MiB of the linear mapping, as far as there is memory. Leaves are pages,
 * allocated in the contexts in which slabs are. An empty leaf stands for the missing ones, which
 * saves a test.
 *
 * When memory is plugged in, a longer root replaces the root. Old roots and leaves stay until the
 * module is unloaded. A reader of an old root finds there all objects handed out before the
 * replacement.
 *
 * As in a process, entries need no ordering beyond the hand-over of the pages.
 */
#ifndef OS_KERNEL_PAGE_MAP_H
#define OS_KERNEL_PAGE_MAP_H

#include "base/atomic.h"
#include "base/base.h"

#define PAGE_MAP_BITS  9 /* of a leaf, which is one page */
#define PAGE_MAP_SLOTS (1ul << PAGE_MAP_BITS)
#define PAGE_MAP_SHIFT (PAGE_SHIFT + PAGE_MAP_BITS)
#define PAGE_MAP_MAX   (1ul << 25) /* leaves, 64 TiB; pages beyond cannot become slabs */
#define PAGE_MAP_CHUNK (~0ul)      /* each page has an entry */

struct os_page_map {
    unsigned long reach; /* in leaves; written after `leaves` */
    void ***leaves;
};
extern struct os_page_map os_page_map;

/*
 * Loads an entry of the root or of a leaf. Neither changes for a live object's page, because both
 * were written before the object was handed out. Loads once, like READ_ONCE(), but without
 * volatile, which keeps compilers from scaling an index within the load and so costs an
 * instruction.
 */
static inline void *os_page_map_entry(void *const *table, unsigned long number)
{
    /* For a pointer that is no live object, either value will do. */
    void *entry = data_race(table[number]);

    OPTIMIZER_HIDE_VAR(entry); /* forces a single load */
    return entry;
}

/* Returns the owner of the page that holds `address`, or NULL for other pages. */
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

static inline void *os_page_owner_of_object(const void *address)
{
    return os_page_owner(address);
}

/* Only the module looks up pages. */
static inline const void *os_page_map_root(void)
{
    return NULL;
}

/* Sets the owner (or NULL) of every page of the range. Returns false, with nothing set, if a leaf
 * cannot be allocated. */
bool os_page_owner_set(void *pages, size_t bytes, void *owner);

/* Not used in a kernel, where blocks keep their size. */
static inline void os_page_owner_resize(void *pages, size_t bytes, void *new_pages,
                                        size_t new_bytes, void *owner)
{
}

#endif /* OS_KERNEL_PAGE_MAP_H */
