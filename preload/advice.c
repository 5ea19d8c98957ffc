/* SPDX-License-Identifier: MIT */
/*
 * madvise, which notes advice that outlives the block it was given for: MADV_DONTFORK, DONTDUMP and
 * WIPEONFORK stay with the pages. The page source undoes them when the pages are freed
 * (pages/advice.c). Everything else, and the call itself, is the next madvise's, of the C library
 * or of a library that replaces it.
 *
 * That one is looked up in a constructor, because dlsym takes a lock of the loader. A thread may
 * hold the loader's lock while it waits for a thread that is in free, which calls this function.
 * Calls before the constructor go to the system.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <prudence/prudence.h>

#include "heap/heap.h"
#include "mapping.h"
#include "pages/pages.h"
#include "slab/slab.h"

PRUDENCE_API int advice_madvise(void *start, size_t bytes, int advice) __asm__("madvise");

static union {
    void *address;
    __typeof(advice_madvise) *call;
} next_madvise; /* written once, by the loader's thread before main */

/* Frees and allocations in dlsym are nested calls here. Otherwise they could call a function that
 * the program has replaced, and if that calls dlsym too, both free the text of an earlier error. */
__attribute__((constructor)) static void advice_find_next(void)
{
    os_busy_enter();
    next_madvise.address = dlsym(RTLD_NEXT, "madvise");
    os_busy_leave();
}

static unsigned lasting(int advice)
{
    switch (advice) {
    case MADV_DONTFORK:
        return MAPPING_DONTFORK;
    case MADV_DONTDUMP:
        return MAPPING_DONTDUMP;
    case MADV_WIPEONFORK:
        return MAPPING_WIPEONFORK;
    default:
        return 0;
    }
}

/* Notes the advice for each slab in the range, the first of which may begin before it. The caller
 * owns the blocks, so they stay. */
static void note(uintptr_t start, size_t bytes, unsigned kind)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    const struct slab *slab = os_page_owner((const void *)start);
    uintptr_t at = start, end;

    if (__builtin_add_overflow(start, bytes, &end))
        return;
    if (!slab)
        slab = os_page_owner_next(&at, end);
    for (; slab; slab = os_page_owner_next(&at, end)) {
        uintptr_t behind = (uintptr_t)slab->pages + slab->bytes;

        behind = behind > at && behind < end ? behind : end;
        /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
        pages_note_advice(slab->pages, (const void *)at, behind - at, kind);
        at = behind;
    }
}

/* A signal handler that interrupted the library notes nothing, because it must not wait for a lock.
 */
int advice_madvise(void *start, size_t bytes, int advice)
{
    unsigned kind = lasting(advice);

    if (unlikely(kind) && !os_busy)
        note((uintptr_t)start, bytes, kind);
    return next_madvise.address ? next_madvise.call(start, bytes, advice)
                                : (int)syscall(SYS_madvise, start, bytes, advice);
}
