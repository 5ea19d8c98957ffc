/* SPDX-License-Identifier: MIT */
/*
 * What the page source asks of the system. Every function keeps errno: a free may end here.
 */
#define _GNU_SOURCE /* mremap */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "page_source.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static void *map_at(void *wish, size_t bytes)
{
    void *pages = mmap(wish, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    tell_release(&race_detector_pages);
    return pages == MAP_FAILED ? NULL : pages;
}

static bool is_aligned(const void *pages, size_t alignment)
{
    return ((uintptr_t)pages & (alignment - 1)) == 0;
}

/* More than is wanted, and what is too much of it unmapped. */
static void *map_and_cut(size_t bytes, size_t alignment)
{
    size_t room;
    char *pages = checked_add(bytes, alignment, &room) ? map_at(NULL, room) : NULL;
    char *aligned = (char *)round_up((uintptr_t)pages, alignment);

    if (!pages)
        return NULL;
    if (aligned != pages)
        munmap(pages, (size_t)(aligned - pages));
    munmap(aligned + bytes, alignment - (size_t)(aligned - pages));
    return aligned;
}

/*
 * The system places mappings below each other, so what it gives first is mostly aligned, if all
 * that came before was a multiple of the alignment long; else what lies a little lower is free.
 */
static void *map_aligned(size_t bytes, size_t alignment)
{
    char *pages = map_at(NULL, bytes), *wish;

    if (!pages || is_aligned(pages, alignment))
        return pages;
    wish = (char *)((uintptr_t)pages & ~(uintptr_t)(alignment - 1));
    munmap(pages, bytes);
    pages = wish ? map_at(wish, bytes) : NULL;
    if (pages && is_aligned(pages, alignment))
        return pages;
    if (pages)
        munmap(pages, bytes);
    return map_and_cut(bytes, alignment);
}

void *mapping_make(size_t bytes, size_t alignment)
{
    int saved_errno = errno;
    void *pages = map_aligned(bytes, alignment);

    errno = saved_errno;
    return pages;
}

/* Memory near the node is a wish only (MPOL_PREFERRED), so a refusal is no failure. */
void *mapping_make_on_node(size_t bytes, size_t alignment, unsigned node)
{
    void *pages = mapping_make(bytes, alignment);
    unsigned long mask = 1ul << node;
    const int preferred = 1;
    int saved_errno = errno;

    if (pages && os_node_count() > 1)
        syscall(SYS_mbind, pages, bytes, preferred, &mask, sizeof mask * 8, 0);
    errno = saved_errno;
    return pages;
}

/* False where that would split a mapping while there are as many as there may be. */
bool mapping_unmake(void *pages, size_t bytes)
{
    int saved_errno = errno;
    bool done = munmap(pages, bytes) == 0;

    errno = saved_errno;
    return done;
}

/* False for memory that is locked. */
bool mapping_give_back(void *pages, size_t bytes)
{
    int saved_errno = errno;
    bool done = madvise(pages, bytes, MADV_DONTNEED) == 0;

    errno = saved_errno;
    return done;
}

bool mapping_extend(void *pages, size_t bytes, size_t more)
{
    int saved_errno = errno;
    bool done = mremap(pages, bytes, bytes + more, 0) != MAP_FAILED;

    errno = saved_errno;
    return done;
}

/* The memory moves to `target`; the address space stays, empty. False where the system cannot do it
 * (Linux before 5.7: EINVAL, before anything else), or refuses: then the target may be lost. */
bool mapping_move_out(void *pages, size_t bytes, void *target, bool *lost)
{
    int saved_errno = errno;
    bool done = mremap(pages, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
                       target) != MAP_FAILED;

    *lost = !done && errno != EINVAL;
    errno = saved_errno;
    return done;
}

/* One mapping of `room` bytes with the memory at its start: Linux before 6.17 neither moves nor extends
 * what consists of several. When refused, nobody knows whether the target is still mapped. */
bool mapping_move(void *pages, size_t bytes, void *target, size_t room)
{
    int saved_errno = errno;
    bool done = mremap(pages, bytes, room, MREMAP_MAYMOVE | MREMAP_FIXED, target) != MAP_FAILED;

    errno = saved_errno;
    return done;
}
