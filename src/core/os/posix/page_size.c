/* SPDX-License-Identifier: MIT */
/*
 * Size of the system's pages (ADR 9): 4 KiB on x86-64; 4, 16 or 64 KiB on aarch64, as the
 * kernel's builder chose. The page source always counts in units of OS_PAGE_SIZE. Everything
 * mapped, purged or protected is whole pages of the system.
 */
#include <sys/auxv.h>

#include "os/os.h"
#include "posix.h"
#include "process.h"

/* A value that is right on every system, until the system has been asked. */
size_t os_page_size READ_MOSTLY = OS_PAGE_SIZE_MOST;

static size_t asked_size(void)
{
    return getauxval(AT_PAGESZ);
}

static bool is_known(size_t size)
{
    return is_power_of_two(size) && size >= OS_PAGE_SIZE && size <= OS_PAGE_SIZE_MOST;
}

COLD void posix_page_size_start(void)
{
    size_t size = asked_size();

    if (!is_known(size))
        os_panic("this system has pages of %zu bytes; the library supports %zu to %zu bytes", size,
                 (size_t)OS_PAGE_SIZE, OS_PAGE_SIZE_MOST);
    os_page_size = size;
}

bool posix_page_size_possible(uint64_t size)
{
    return is_known(size) && size >= asked_size();
}

void posix_page_size_set(uint64_t size)
{
    if (!load_relaxed(&process_started))
        os_page_size = size;
}
