/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The module's own look at src/os/kernel: beginning, end, and what kernel/ sets. */
#ifndef OS_KERNEL_H
#define OS_KERNEL_H

#include "os/os.h"

bool os_kernel_start(void);
void os_kernel_stop(void); /* nobody uses any of it any more */

/* CPU hotplug (kernel/hotplug.c): a dead CPU's lines may be taken without interrupting it. Told after it ran, and
 * before it runs. May sleep. */
void os_percpu_note_dead(unsigned cpu, bool dead);

/* How often a remote take interrupted another CPU. */
extern uint64_t os_percpu_interrupts;

/* For tests: called by the thread that has found a CPU dead, before the claim; preemption is off. NULL: no test. */
extern void (*os_percpu_claims)(unsigned cpu);

/* Whether locks of the kernel's own allocators may be taken here. */
static inline bool os_may_lock(void)
{
    return !IS_ENABLED(CONFIG_PREEMPT_RT) || preemptible();
}

/* deferred_work.c: os_pages_free or os_meta_free, where locks may be taken. Any context. */
void os_free_later(void *memory, size_t bytes, bool pages);
void os_deferred_work_start(void);
void os_deferred_work_stop(void);

/* idle.c */
void os_idle_stop(void);

/* page_map.c. To cover all memory that there is, and memory up to a page frame that is about to come. Before
 * pages there can be had. May sleep. False: no memory for it. */
bool os_page_map_cover(void);
bool os_page_map_extend(unsigned long end);
void os_page_map_release(void);
uint64_t os_page_map_bytes(void);

#endif /* OS_KERNEL_H */
