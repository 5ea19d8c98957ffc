/* SPDX-License-Identifier: MIT */
/*
 * The registry: all threads of short-term memory, in lists, and what is left of those that were freed.
 *
 * scm_lock guards the lists, and orders coming and going (threads.c) and taking from orphans (left.c). The tables of
 * clocks, regions, owners and finalizers are under it too. Ticks and refreshes never wait for it.
 */
#include "scm/scm.h"

struct os_lock scm_lock = OS_LOCK_INIT(OS_RANK_SCM);
struct list scm_threads = {&scm_threads, &scm_threads};
struct list scm_orphans = {&scm_orphans, &scm_orphans};
struct list scm_abandoned = {&scm_abandoned, &scm_abandoned};
struct scm_counts scm_gone;
unsigned scm_ending;

/* The number is of a thread that this process has not, because a fork did not copy it. */
bool scm_is_abandoned(uint64_t number)
{
    struct list *item;

    list_for_each(item, &scm_abandoned)
    {
        if (list_entry(item, struct scm_thread, link)->number == number)
            return true;
    }
    return false;
}
