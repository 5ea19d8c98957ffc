/* SPDX-License-Identifier: MIT */
/*
 * Reserved pages: address space that no thread may touch, except the pages that are opened. And guarded ones: pages in use
 * that no thread may touch for now. Linux 6.13 has a mark in the page table for that, which costs no mapping of its own
 * (a process has 65530 of them); older ones change the protection.
 */
#include <sys/mman.h>

#include "mapping.h"
#include "posix.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif

bool posix_guard_marks READ_MOSTLY = true;

/* Some pages are guarded by their protection. Atomic; set before the first of them is. */
static bool by_protection;

void *os_pages_reserve(size_t bytes)
{
    void *pages;

    if (injected_failure())
        return NULL;
    pages = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

bool os_pages_open(void *pages, size_t bytes)
{
    if (injected_failure())
        return false;
    return mprotect(pages, bytes, PROT_READ | PROT_WRITE) == 0;
}

/* The protection first: between the two calls a stray read must not find zeros. */
void os_pages_close(void *pages, size_t bytes)
{
    if (mprotect(pages, bytes, PROT_NONE) != 0)
        os_report("a freed page at %p could not be protected: its misuse will not be seen", pages);
    madvise(pages, bytes, MADV_DONTNEED);
}

bool os_pages_guard(void *pages, size_t bytes)
{
    if (injected_failure())
        return false;
    if (likely(posix_guard_marks) && madvise(pages, bytes, MADV_GUARD_INSTALL) == 0)
        return true;
    store_relaxed(&by_protection, true);
    if (mprotect(pages, bytes, PROT_NONE) != 0) {
        os_pages_unguard(pages, bytes); /* some of them may have marks */
        return false;
    }
    madvise(pages, bytes, MADV_DONTNEED);
    return true;
}

bool os_pages_unguard(void *pages, size_t bytes)
{
    madvise(pages, bytes, MADV_GUARD_REMOVE);
    return !load_relaxed(&by_protection) || mprotect(pages, bytes, PROT_READ | PROT_WRITE) == 0;
}

bool os_pages_protect(void *pages, size_t bytes, bool closed)
{
    if (closed && injected_failure())
        return false;
    return mprotect(pages, bytes, closed ? PROT_NONE : PROT_READ | PROT_WRITE) == 0;
}
