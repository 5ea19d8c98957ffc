/* SPDX-License-Identifier: MIT */
/*
 * The library's requests to the system for memory. No other file maps, unmaps, protects or purges
 * anything (but file.c tries to map files). Every function keeps errno, because a free may end
 * here.
 *
 * Memory for the program's objects is mapped by the functions of the C library. A program or a
 * library may have replaced them, to know which addresses come and go (MPI, UCX, tracers). Those
 * functions may allocate, take locks and wait, so the caller holds nothing that others wait for
 * (os_mapping_call). The library's own books are mapped by system calls (`own`), because no other
 * code has an address there, and they grow while locks are held.
 *
 * The system rounds every range outwards to whole pages, and would affect neighbours as well. So
 * every range here must be whole pages, which is checked in all builds, because a panic is better
 * than another thread's lost data.
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
#include "system_call.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif
#define NO_ADVICE 0x7fffffff /* no system knows it */

bool (*os_memory_fails)(void) READ_MOSTLY = NULL;

#define WISHES 16 /* most aligned addresses to try one by one */

static bool is_aligned(const void *pages, size_t alignment)
{
    return ((uintptr_t)pages & (alignment - 1)) == 0;
}

static void require_whole_pages(const void *pages, size_t bytes)
{
    if (unlikely(!is_aligned(pages, os_page_size) || bytes & (os_page_size - 1)))
        os_panic("%zu bytes at %p are not whole pages of %zu bytes", bytes, pages, os_page_size);
}

/* --------------------------------------------------------------------- the calls, by either way */

enum whose { PROGRAMS, OWN };

__thread bool os_in_mapping_call;
void (*mapping_seen)(const char *call) READ_MOSTLY = NULL;

/* A race detector must see all mappings; otherwise it confuses two uses of an address. It
 * allocates nothing. */
#if defined(__SANITIZE_THREAD__)
#define DETECTOR_SEES_ALL true
#else
#define DETECTOR_SEES_ALL race_detector_on
#endif

/* Returns true if the C library's function may be called; mapping_leave() ends that. An allocation
 * in such a function may come here again and then calls the system itself, so recursion ends and
 * the function need not take care. */
static bool mapping_enter(enum whose whose, const char *what)
{
    void (*seen)(const char *call);

    if ((whose == OWN && !DETECTOR_SEES_ALL) || os_in_mapping_call)
        return false;
    if (whose == PROGRAMS)
        os_mapping_call();
    os_in_mapping_call = true;
    seen = load_relaxed(&mapping_seen);
    if (whose == PROGRAMS && unlikely(seen))
        seen(what);
    return true;
}

static void mapping_leave(void)
{
    os_in_mapping_call = false;
}

static void *call_mmap(enum whose whose, void *wish, size_t bytes, int protection, int flags)
{
    void *pages;

    if (!mapping_enter(whose, "mmap"))
        return (void *)system_call(SYS_mmap, (long)wish, (long)bytes, protection, flags, -1, 0);
    pages = mmap(wish, bytes, protection, flags, -1, 0);
    mapping_leave();
    return pages;
}

static bool call_munmap(enum whose whose, void *pages, size_t bytes)
{
    bool done;

    if (!mapping_enter(whose, "munmap"))
        return system_call(SYS_munmap, (long)pages, (long)bytes, 0, 0, 0, 0) == 0;
    done = munmap(pages, bytes) == 0;
    mapping_leave();
    return done;
}

static bool call_madvise(enum whose whose, void *pages, size_t bytes, int advice)
{
    bool done;

    if (!mapping_enter(whose, "madvise"))
        return system_call(SYS_madvise, (long)pages, (long)bytes, advice, 0, 0, 0) == 0;
    done = madvise(pages, bytes, advice) == 0;
    mapping_leave();
    return done;
}

static bool call_mprotect(void *pages, size_t bytes, int protection)
{
    bool done;

    if (!mapping_enter(PROGRAMS, "mprotect"))
        return system_call(SYS_mprotect, (long)pages, (long)bytes, protection, 0, 0, 0) == 0;
    done = mprotect(pages, bytes, protection) == 0;
    mapping_leave();
    return done;
}

/* `target` is the new address with MREMAP_FIXED. */
static bool call_mremap(void *pages, size_t bytes, size_t wanted, int flags, void *target)
{
    bool done;

    if (!mapping_enter(PROGRAMS, "mremap"))
        return (void *)system_call(SYS_mremap, (long)pages, (long)bytes, (long)wanted, flags,
                                   (long)target, 0) != MAP_FAILED;
    done = mremap(pages, bytes, wanted, flags, target) != MAP_FAILED;
    mapping_leave();
    return done;
}

/* -------------------------------------------------------------------------------------- mapping */

static bool unmap(enum whose whose, void *pages, size_t bytes)
{
    require_whole_pages(pages, bytes);
    return call_munmap(whose, pages, bytes);
}

static void *ask(enum whose whose, void *wish, size_t bytes, int protection, int flags)
{
    void *pages = call_mmap(whose, wish, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags);

    tell_release(&race_detector_pages);
    return pages == MAP_FAILED ? NULL : pages;
}

/* Maps pages when option page_size asks for larger pages than the system has, so the system does
 * not align to them. */
static void *ask_and_cut(enum whose whose, size_t bytes, int protection, int flags)
{
    char *pages = ask(whose, NULL, bytes + os_page_size, protection, flags);
    char *aligned = (char *)round_up((uintptr_t)pages, os_page_size);

    if (!pages)
        return NULL;
    if (aligned != pages)
        call_munmap(whose, pages, (size_t)(aligned - pages));
    call_munmap(whose, aligned + bytes, os_page_size - (size_t)(aligned - pages));
    return aligned;
}

static void *map_for(enum whose whose, void *wish, size_t bytes, int protection, int flags)
{
    void *pages;

    require_whole_pages(wish, bytes);
    pages = ask(whose, wish, bytes, protection, flags);
    if (likely(is_aligned(pages, os_page_size)))
        return pages;
    call_munmap(whose, pages, bytes);
    return ask_and_cut(whose, bytes, protection, flags);
}

static void *map(void *wish, size_t bytes, int protection, int flags)
{
    return map_for(PROGRAMS, wish, bytes, protection, flags);
}

static void *map_at(void *wish, size_t bytes)
{
    return map(wish, bytes, PROT_READ | PROT_WRITE, 0);
}

/* Maps more than is wanted and unmaps the excess. */
static void *map_and_cut(size_t bytes, size_t alignment, int protection, int flags)
{
    size_t room;
    char *pages = checked_add(bytes, alignment, &room) ? map(NULL, room, protection, flags) : NULL;
    char *aligned = (char *)round_up((uintptr_t)pages, alignment);

    if (!pages)
        return NULL;
    if (aligned != pages)
        unmap(PROGRAMS, pages, (size_t)(aligned - pages));
    unmap(PROGRAMS, aligned + bytes, alignment - (size_t)(aligned - pages));
    return aligned;
}

/* Maps at an address and nowhere else, if it is free. Passes a wish, not a command
 * (MAP_FIXED_NOREPLACE), because ThreadSanitizer turns a wish within the sanitizer's own range
 * into none, and a command into one for address 0. */
static void *map_exactly(uintptr_t wish, size_t bytes)
{
    void *pages = map_at((void *)wish, bytes);

    if (!pages || (uintptr_t)pages == wish)
        return pages;
    unmap(PROGRAMS, pages, bytes);
    return NULL;
}

/*
 * Maps aligned pages. The system places mappings below each other, so the first address is mostly
 * aligned if all earlier lengths were multiples of the alignment. Otherwise the next lower aligned
 * address is probably free, or the one below that. No try maps more than is wanted, because that
 * may exceed the limit of locked memory.
 */
static void *map_aligned(size_t bytes, size_t alignment)
{
    char *pages = map_at(NULL, bytes);
    uintptr_t wish;

    if (!pages || is_aligned(pages, alignment))
        return pages;
    wish = (uintptr_t)pages & ~(uintptr_t)(alignment - 1);
    unmap(PROGRAMS, pages, bytes);
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

/* Reserves address space only, which counts as no memory and which mlockall leaves alone. */
void *mapping_reserve(size_t bytes, size_t alignment)
{
    int saved_errno = errno;
    void *pages = alignment <= os_page_size
                      ? map(NULL, bytes, PROT_NONE, MAP_NORESERVE)
                      : map_and_cut(bytes, alignment, PROT_NONE, MAP_NORESERVE);

    errno = saved_errno;
    return pages;
}

void *mapping_make_own(size_t bytes)
{
    int saved_errno = errno;
    void *pages = map_for(OWN, NULL, bytes, PROT_READ | PROT_WRITE, 0);

    errno = saved_errno;
    return pages;
}

/* Maps a table that stays mostly untouched, so that a system which limits committed memory does
 * not count it. */
void *mapping_make_own_sparse(size_t bytes)
{
    int saved_errno = errno;
    void *pages = map_for(OWN, NULL, bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE);

    errno = saved_errno;
    return pages;
}

/* Bypasses the program's function, which must not be called while something is held. */
void *mapping_make_unseen(size_t bytes, size_t alignment)
{
    bool in_call = os_in_mapping_call;
    void *pages;

    os_in_mapping_call = true;
    pages = mapping_make(bytes, alignment);
    os_in_mapping_call = in_call;
    return pages;
}

static bool protect(void *pages, size_t bytes, int protection)
{
    int saved_errno = errno;
    bool done;

    require_whole_pages(pages, bytes);
    done = call_mprotect(pages, bytes, protection);
    errno = saved_errno;
    return done;
}

static bool advise(enum whose whose, void *pages, size_t bytes, int advice)
{
    int saved_errno = errno;
    bool done;

    require_whole_pages(pages, bytes);
    done = call_madvise(whose, pages, bytes, advice);
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

static uint32_t advice_answer; /* 0 until the system was asked; atomic */

/* Returns whether the system follows advice. QEMU's emulation of a process answers 0 to any, and
 * follows little. A call for no bytes shows which advice a system knows (madvise(2)), so a system
 * that claims to know NO_ADVICE is not believed. All threads find the same. */
static bool follows_advice(void)
{
    enum { FOLLOWS = 1, IGNORES };
    uint32_t found = load_relaxed(&advice_answer);

    if (!found) {
        found = advise(OWN, NULL, 0, NO_ADVICE) ? IGNORES : FOLLOWS;
        store_relaxed(&advice_answer, found);
    }
    return found == FOLLOWS;
}

bool mapping_mark(void *pages, size_t bytes, bool guarded)
{
    return follows_advice() &&
           advise(PROGRAMS, pages, bytes, guarded ? MADV_GUARD_INSTALL : MADV_GUARD_REMOVE);
}

bool mapping_wipe_in_copies(void *pages, size_t bytes)
{
    return advise(OWN, pages, bytes, MADV_WIPEONFORK);
}

/* Asks for memory near the node. This is only a preference (MPOL_PREFERRED), so a refusal is no
 * failure. */
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

/* Affects later use of the range. If the system has no huge pages, nothing changes. */
void mapping_wish_huge(void *pages, size_t bytes)
{
    if (load_relaxed(&huge_wanted))
        advise(PROGRAMS, pages, bytes, MADV_HUGEPAGE);
}

static bool unmake(enum whose whose, void *pages, size_t bytes)
{
    int saved_errno = errno;
    bool done = unmap(whose, pages, bytes);

    errno = saved_errno;
    return done;
}

/* Returns false if that would split a mapping while the process has as many as it may have. */
bool mapping_unmake(void *pages, size_t bytes)
{
    return unmake(PROGRAMS, pages, bytes);
}

bool mapping_unmake_own(void *pages, size_t bytes)
{
    return unmake(OWN, pages, bytes);
}

/* Returns false for locked memory. */
bool mapping_purge(void *pages, size_t bytes)
{
    return advise(PROGRAMS, pages, bytes, MADV_DONTNEED);
}

/* Asks by a call that changes nothing in private memory. It is no function of the program, so
 * fork's handlers may ask, too. */
bool mapping_is_there(const void *pages, size_t bytes)
{
    int saved_errno = errno;
    bool there =
        system_call(SYS_msync, (long)pages, (long)bytes, MS_ASYNC, 0, 0, 0) == 0 || errno != ENOMEM;

    errno = saved_errno;
    return there;
}

/* One system call for each kind, because each goes over the mappings in the range. A refused
 * MADV_DOFORK alone does not say that pages are missing: Linux before 6 refuses in the same way to
 * split a mapping when the process has as many as it may have. */
bool mapping_undo_advice(void *pages, size_t bytes, unsigned kinds)
{
    bool there = !(kinds & MAPPING_DONTFORK) || advise(PROGRAMS, pages, bytes, MADV_DOFORK) ||
                 mapping_is_there(pages, bytes);

    if (kinds & MAPPING_DONTDUMP)
        advise(PROGRAMS, pages, bytes, MADV_DODUMP);
    if (kinds & MAPPING_WIPEONFORK)
        advise(PROGRAMS, pages, bytes, MADV_KEEPONFORK);
    return there;
}

bool mapping_purge_own(void *pages, size_t bytes)
{
    return advise(OWN, pages, bytes, MADV_DONTNEED);
}

/* Tests with an untouched page whether mlockall(MCL_FUTURE) locks new mappings, which then
 * cannot be purged. If the page cannot be mapped, memory is limited, perhaps for locking, so it
 * also returns true. */
bool mapping_is_locked(void)
{
    int saved_errno = errno;
    void *page = map_for(OWN, NULL, os_page_size, PROT_READ | PROT_WRITE, 0);
    bool locked = !page || !advise(OWN, page, os_page_size, MADV_DONTNEED);

    if (page)
        unmap(OWN, page, os_page_size);
    errno = saved_errno;
    return locked;
}

bool mapping_extend(void *pages, size_t bytes, size_t more)
{
    int saved_errno = errno;
    bool done;

    require_whole_pages(pages, bytes | more);
    done = call_mremap(pages, bytes, bytes + more, 0, NULL);
    errno = saved_errno;
    return done;
}

/* Moves the memory to `target`; the address space stays, empty. Returns false if the system
 * cannot (Linux before 5.7 returns EINVAL and changes nothing) or refuses, in which case the
 * target may be lost. */
bool mapping_move_out(void *pages, size_t bytes, void *target, bool *lost)
{
    int saved_errno = errno;
    bool done;

    require_whole_pages(pages, bytes | (uintptr_t)target);
    done =
        call_mremap(pages, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, target);
    *lost = !done && errno != EINVAL;
    errno = saved_errno;
    return done;
}

/* Leaves one mapping of `room` bytes with the memory at its start, because Linux before 6.17
 * neither moves nor extends a range of several mappings. If the system refuses, the target may
 * or may not still be mapped. */
bool mapping_move(void *pages, size_t bytes, void *target, size_t room)
{
    int saved_errno = errno;
    bool done;

    require_whole_pages(pages, bytes | room | (uintptr_t)target);
    done = call_mremap(pages, bytes, room, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    errno = saved_errno;
    return done;
}
