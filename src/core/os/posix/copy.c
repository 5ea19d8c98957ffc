/* SPDX-License-Identifier: MIT */
/*
 * Detects a copy of the process made without the fork handlers: by _Fork, or by clone without
 * CLONE_VM.
 *
 * The system clears one page in every copy (MADV_WIPEONFORK, Linux 4.14; without it, copies are not
 * detected). A child of vfork, posix_spawn or clone with CLONE_VM shares the parent's memory, so
 * the page is not cleared there, and nothing may be repaired. The fork handlers report a copy that
 * they know of (posix_copy_known).
 *
 * Threads read the page when they have time: before they wait, register, or take another thread
 * for dead (os_copy_check). Only the copy's first thread repairs, because no other knows which
 * slots and locks are the first one's. Threads that were made before that take none for dead until
 * it is done, because the first thread's slots still have the id of the original. It leaves them
 * what they have (os_thread_lives_in_child).
 */
#include "mapping.h"
#include "posix.h"

uint32_t *os_copy_page READ_MOSTLY = NULL;
bool os_copy_made READ_MOSTLY = false;
enum { MENDED_BY = 1 }; /* word of the page; 0 until a thread begins to mend the copy */
static READ_MOSTLY void (*when_noticed)(void) = NULL;

COLD void posix_copy_start(void (*notice)(void))
{
    uint32_t *page;

    when_noticed = notice;
    if (load_relaxed(&os_copy_page))
        return;
    page = mapping_make_own(os_page_size);
    if (!page)
        return;
    page[0] = page[MENDED_BY] = 1;
    if (mapping_wipe_in_copies(page, os_page_size))
        store_release(&os_copy_page, page);
    else
        mapping_unmake_own(page, os_page_size);
}

bool posix_copy_known(void)
{
    uint32_t *page = load_relaxed(&os_copy_page);
    bool is_news = !page || exchange_relaxed(page, 1u) == 0;

    posix_process_note();
    return is_news;
}

/* Returns true to the thread that is to mend the copy, and then to call posix_copy_known(). Until
 * then other threads take none for dead. */
bool posix_copy_report(void)
{
    uint32_t *page = load_relaxed(&os_copy_page);

    if (!page || exchange_relaxed(&page[MENDED_BY], 1u))
        return false;
    posix_process_note();
    store_relaxed(&os_copy_made, true);
    if (!os_is_single_threaded()) /* else no other thread could have lost anything */
        os_report(
            "process %d was made by _Fork or clone, without the handlers of fork: objects that "
            "other threads were moving in the library are lost, and locks that those threads held "
            "stay locked; use fork",
            os_process_id());
    return true;
}

void os_copy_check_slow(void)
{
    if (when_noticed)
        when_noticed();
}
