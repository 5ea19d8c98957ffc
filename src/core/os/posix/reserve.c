/* SPDX-License-Identifier: MIT */
/*
 * Reserved and guarded pages. Reserved pages are address space that no thread may touch, except the
 * pages that are opened. Guarded pages are in use, but no thread may touch them for now. Linux 6.13
 * can mark them in the page table, which costs no separate mapping (a process has 65530 of them);
 * on older kernels, and where advice is ignored, their protection changes.
 */
#include "mapping.h"
#include "posix.h"

bool posix_guard_marks READ_MOSTLY = true;

/* Set before any pages are guarded by their protection. Atomic. */
static bool by_protection;

void *os_pages_reserve(size_t bytes)
{
    return injected_failure() ? NULL : mapping_reserve(bytes, os_page_size);
}

bool os_pages_open(void *pages, size_t bytes)
{
    return !injected_failure() && mapping_open(pages, bytes);
}

/* Protects before it purges, so that a stray read in between does not find zeros. */
void os_pages_close(void *pages, size_t bytes)
{
    if (!mapping_close(pages, bytes))
        os_report("a freed page at %p could not be protected, so its misuse goes unnoticed", pages);
    mapping_purge(pages, bytes);
}

bool os_pages_guard(void *pages, size_t bytes)
{
    if (injected_failure())
        return false;
    if (likely(posix_guard_marks) && mapping_mark(pages, bytes, true))
        return true;
    store_relaxed(&by_protection, true);
    if (!mapping_close(pages, bytes)) {
        os_pages_unguard(pages, bytes); /* some may have marks */
        return false;
    }
    mapping_purge(pages, bytes);
    return true;
}

bool os_pages_unguard(void *pages, size_t bytes)
{
    mapping_mark(pages, bytes, false);
    return !load_relaxed(&by_protection) || mapping_open(pages, bytes);
}

bool os_pages_protect(void *pages, size_t bytes, bool closed)
{
    if (!closed)
        return mapping_open(pages, bytes);
    return !injected_failure() && mapping_close(pages, bytes);
}
