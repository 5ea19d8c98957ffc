/* SPDX-License-Identifier: MIT */
/*
 * The registry lists all threads of short-term memory, and sums the counts of freed ones.
 *
 * scm_lock protects the lists, and orders coming and going (threads.c) and taking from orphans
 * (left.c). The lock also protects the tables of clocks, regions, owners and finalizers. Ticks and
 * refreshes never wait for it.
 */
#include "shortterm/scm.h"

struct os_lock scm_lock = OS_LOCK_INIT(OS_RANK_SCM);
struct list scm_threads = {&scm_threads, &scm_threads};
struct list scm_orphans = {&scm_orphans, &scm_orphans};
struct list scm_abandoned = {&scm_abandoned, &scm_abandoned};
struct scm_counts scm_gone;
unsigned scm_ending;

/* Returns whether the number belongs to a thread that fork did not copy into this process. */
bool registry_has_abandoned(uint64_t number)
{
    struct list *item;

    list_for_each(item, &scm_abandoned)
    {
        if (list_entry(item, struct scm_thread, link)->number == number)
            return true;
    }
    return false;
}
