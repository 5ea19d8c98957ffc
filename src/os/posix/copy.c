/* SPDX-License-Identifier: MIT */
/*
 * A copy of the process that was made without the fork handlers: by _Fork, or clone without CLONE_VM.
 *
 * It is recognized by a page that the system clears in every copy (MADV_WIPEONFORK, Linux 4.14; without it a copy is
 * not recognized). A child of vfork, posix_spawn or clone with CLONE_VM shares its parent's memory: the page is not
 * cleared there, and nothing may be mended. The handlers of fork say that they know (posix_copy_known).
 *
 * The page is looked at where a thread has time: before it waits, registers, or takes another for gone
 * (os_copy_check).
 */
#include <unistd.h>

#include "mapping.h"
#include "posix.h"

uint32_t *os_copy_page READ_MOSTLY = NULL;
bool os_copy_made READ_MOSTLY = false;
static void (*mend)(void);

void posix_copy_start(void (*when_copied)(void))
{
    uint32_t *page;

    mend = when_copied;
    if (load_relaxed(&os_copy_page))
        return;
    page = mapping_make_own(os_page_size);
    if (!page)
        return;
    *page = 1;
    if (mapping_wipe_in_copies(page, os_page_size))
        store_release(&os_copy_page, page);
    else
        mapping_unmake_own(page, os_page_size);
}

void posix_copy_known(void)
{
    uint32_t *page = load_relaxed(&os_copy_page);

    if (page)
        store_relaxed(page, 1u);
    posix_process_note();
}

/* One thread mends, the one that came here first: as a rule the only one. */
void os_copy_check_slow(void)
{
    uint32_t no = 0;

    if (!mend || !compare_exchange(load_acquire(&os_copy_page), &no, 1u))
        return;
    store_relaxed(&os_copy_made, true);
    posix_process_note();
    os_report(
        "process %d was made by _Fork or clone, without the handlers of fork: it loses what other "
        "threads were doing in the library, and locks that they held stay locked; use fork",
        os_process_id());
    mend();
}
