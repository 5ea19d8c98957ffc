/* SPDX-License-Identifier: MIT */
/*
 * What the library asks of the system where memory is concerned: no other file maps, unmaps, protects or gives back
 * anything. Every function keeps errno: a free may end here.
 *
 * The system rounds what it is asked for outwards, to whole pages of its own, and would take what lies next to it as
 * well. So everything is whole pages here, which is checked in all builds: a panic is better than somebody else's lost
 * data.
 */
#define _GNU_SOURCE /* mremap */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "mapping.h"
#include "posix.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif

bool (*os_memory_fails)(void) READ_MOSTLY = NULL;

#define WISHES 16 /* aligned addresses that are tried one by one */

static bool is_aligned(const void *pages, size_t alignment)
{
    return ((uintptr_t)pages & (alignment - 1)) == 0;
}

static void require_whole_pages(const void *pages, size_t bytes)
{
    if (unlikely(!is_aligned(pages, os_page_size) || bytes & (os_page_size - 1)))
        os_panic("%zu bytes at %p are not whole pages of %zu bytes", bytes, pages, os_page_size);
}

static void unmap(void *pages, size_t bytes)
{
    require_whole_pages(pages, bytes);
    munmap(pages, bytes);
}

static void *ask(void *wish, size_t bytes, int protection, int flags)
{
    void *pages = mmap(wish, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    tell_release(&race_detector_pages);
    return pages == MAP_FAILED ? NULL : pages;
}

/* The option page_size asks for larger pages than the system has, which knows nothing of it. */
static void *ask_and_cut(size_t bytes, int protection, int flags)
{
    char *pages = ask(NULL, bytes + os_page_size, protection, flags);
    char *aligned = (char *)round_up((uintptr_t)pages, os_page_size);

    if (!pages)
        return NULL;
    if (aligned != pages)
        munmap(pages, (size_t)(aligned - pages));
    munmap(aligned + bytes, os_page_size - (size_t)(aligned - pages));
    return aligned;
}

static void *map(void *wish, size_t bytes, int protection, int flags)
{
    void *pages;

    require_whole_pages(wish, bytes);
    pages = ask(wish, bytes, protection, flags);
    if (likely(is_aligned(pages, os_page_size)))
        return pages;
    munmap(pages, bytes);
    return ask_and_cut(bytes, protection, flags);
}

static void *map_at(void *wish, size_t bytes)
{
    return map(wish, bytes, PROT_READ | PROT_WRITE, 0);
}

/* More than is wanted, and what is too much of it unmapped. */
static void *map_and_cut(size_t bytes, size_t alignment, int protection, int flags)
{
    size_t room;
    char *pages = checked_add(bytes, alignment, &room) ? map(NULL, room, protection, flags) : NULL;
    char *aligned = (char *)round_up((uintptr_t)pages, alignment);

    if (!pages)
        return NULL;
    if (aligned != pages)
        unmap(pages, (size_t)(aligned - pages));
    unmap(aligned + bytes, alignment - (size_t)(aligned - pages));
    return aligned;
}

/* At an address and nowhere else, if it is free. A wish and no command (MAP_FIXED_NOREPLACE): where
 * ThreadSanitizer has its own memory it turns a wish into none, and a command into one for address 0. */
static void *map_exactly(uintptr_t wish, size_t bytes)
{
    void *pages = map_at((void *)wish, bytes);

    if (!pages || (uintptr_t)pages == wish)
        return pages;
    unmap(pages, bytes);
    return NULL;
}

/*
 * The system places mappings below each other, so what it gives first is mostly aligned, if all
 * that came before was a multiple of the alignment long; else what lies a little lower is free, or what
 * lies below that. Nothing more than is wanted is mapped on the way, since it may be more than what may
 * be locked.
 */
static void *map_aligned(size_t bytes, size_t alignment)
{
    char *pages = map_at(NULL, bytes);
    uintptr_t wish;

    if (!pages || is_aligned(pages, alignment))
        return pages;
    wish = (uintptr_t)pages & ~(uintptr_t)(alignment - 1);
    unmap(pages, bytes);
    for (unsigned i = 0; i < WISHES && wish; i++) {
        pages = map_exactly(wish, bytes);
        if (pages)
            return pages;
        wish = wish > alignment ? wish - alignment : 0;
    }
    return map_and_cut(bytes, alignment, PROT_READ | PROT_WRITE, 0);
}

void *mapping_make(size_t bytes, size_t alignment)
{
    int saved_errno = errno;
    void *pages = map_aligned(bytes, alignment);

    errno = saved_errno;
    return pages;
}

/* Address space alone: it counts as no memory, and locking all that is mapped leaves it alone. */
void *mapping_reserve(size_t bytes, size_t alignment)
{
    int saved_errno = errno;
    void *pages = alignment <= os_page_size
                      ? map(NULL, bytes, PROT_NONE, MAP_NORESERVE)
                      : map_and_cut(bytes, alignment, PROT_NONE, MAP_NORESERVE);

    errno = saved_errno;
    return pages;
}

/* For a table of which most stays untouched: not counted by a system that counts what is mapped. */
void *mapping_make_sparse(size_t bytes)
{
    int saved_errno = errno;
    void *pages = map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE);

    errno = saved_errno;
    return pages;
}

/* By the system call, because this thread is in libc's mmap, or munmap or madvise, already, and what
 * stands in its place would call us once more, and so on. What is mapped beyond `bytes` stays so,
 * untouched, because munmap may have a stand-in, too. */
void *mapping_make_inside(size_t bytes, size_t alignment)
{
    int saved_errno = errno;
    size_t room;
    long pages = -1;

    require_whole_pages(NULL, bytes);
    if (checked_add(bytes, alignment, &room))
        pages = syscall(SYS_mmap, NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                        -1, 0L);
    errno = saved_errno;
    return pages == -1 ? NULL : (void *)round_up((uintptr_t)pages, alignment);
}

static bool protect(void *pages, size_t bytes, int protection)
{
    int saved_errno = errno;
    bool done;

    require_whole_pages(pages, bytes);
    done = mprotect(pages, bytes, protection) == 0;
    errno = saved_errno;
    return done;
}

static bool advise(void *pages, size_t bytes, int advice)
{
    int saved_errno = errno;
    bool done;

    require_whole_pages(pages, bytes);
    done = madvise(pages, bytes, advice) == 0;
    errno = saved_errno;
    return done;
}

bool mapping_open(void *pages, size_t bytes)
{
    return protect(pages, bytes, PROT_READ | PROT_WRITE);
}

bool mapping_close(void *pages, size_t bytes)
{
    return protect(pages, bytes, PROT_NONE);
}

bool mapping_mark(void *pages, size_t bytes, bool guarded)
{
    return advise(pages, bytes, guarded ? MADV_GUARD_INSTALL : MADV_GUARD_REMOVE);
}

bool mapping_wipe_in_copies(void *pages, size_t bytes)
{
    return advise(pages, bytes, MADV_WIPEONFORK);
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

static bool huge_wanted; /* option huge_pages; atomic */

void os_pages_set_huge(bool wanted)
{
    store_relaxed(&huge_wanted, wanted);
}

/* Of what is mapped from now on. Where the system has none it stays as it is. */
void mapping_wish_huge(void *pages, size_t bytes)
{
    if (load_relaxed(&huge_wanted))
        advise(pages, bytes, MADV_HUGEPAGE);
}

/* False where that would split a mapping while there are as many as there may be. */
bool mapping_unmake(void *pages, size_t bytes)
{
    int saved_errno = errno;
    bool done;

    require_whole_pages(pages, bytes);
    done = munmap(pages, bytes) == 0;
    errno = saved_errno;
    return done;
}

/* False for memory that is locked. */
bool mapping_purge(void *pages, size_t bytes)
{
    return advise(pages, bytes, MADV_DONTNEED);
}

/* By a page that nobody has touched: where mlockall(MCL_FUTURE) locks what is mapped, its memory cannot be given back. No memory
 * for it: there is a limit of what may be locked, or of all. */
bool mapping_is_locked(void)
{
    int saved_errno = errno;
    void *page = map_at(NULL, os_page_size);
    bool locked = !page || !advise(page, os_page_size, MADV_DONTNEED);

    if (page)
        unmap(page, os_page_size);
    errno = saved_errno;
    return locked;
}

bool mapping_extend(void *pages, size_t bytes, size_t more)
{
    int saved_errno = errno;
    bool done;

    require_whole_pages(pages, bytes | more);
    done = mremap(pages, bytes, bytes + more, 0) != MAP_FAILED;
    errno = saved_errno;
    return done;
}

/* The memory moves to `target`; the address space stays, empty. False where the system cannot do it
 * (Linux before 5.7: EINVAL, before anything else), or refuses: then the target may be lost. */
bool mapping_move_out(void *pages, size_t bytes, void *target, bool *lost)
{
    int saved_errno = errno;
    bool done;

    require_whole_pages(pages, bytes | (uintptr_t)target);
    done = mremap(pages, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, target) !=
           MAP_FAILED;

    *lost = !done && errno != EINVAL;
    errno = saved_errno;
    return done;
}

/* One mapping of `room` bytes with the memory at its start: Linux before 6.17 neither moves nor extends
 * what consists of several. When refused, nobody knows whether the target is still mapped. */
bool mapping_move(void *pages, size_t bytes, void *target, size_t room)
{
    int saved_errno = errno;
    bool done;

    require_whole_pages(pages, bytes | room | (uintptr_t)target);
    done = mremap(pages, bytes, room, MREMAP_MAYMOVE | MREMAP_FIXED, target) != MAP_FAILED;
    errno = saved_errno;
    return done;
}
