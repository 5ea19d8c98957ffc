/* SPDX-License-Identifier: MIT */
/* Reserved pages: address space that no thread may touch, except the pages that are opened. */
#include <sys/mman.h>

#include "mapping.h"

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
