/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Interface of src/core/os/kernel to kernel/: start, stop, and the variables that kernel/ sets. */
#ifndef OS_KERNEL_H
#define OS_KERNEL_H

#include "os/os.h"

bool os_kernel_start(void);
void os_kernel_stop(void); /* called when nothing uses these functions any more */

/* For CPU hotplug (kernel/hotplug.c). A dead CPU's lines may be taken without an interrupt. Called
 * after the CPU has stopped, and before it runs again. May sleep. */
void os_percpu_note_dead(unsigned cpu, bool dead);

/* Number of interrupts sent to other CPUs to take their lines. */
extern uint64_t os_percpu_interrupts;

/* For tests. Called, unless NULL, by a thread that has found a CPU dead, before the claim;
 * preemption is off. */
extern void (*os_percpu_claims)(unsigned cpu);

/* Returns whether locks of the kernel's own allocators may be taken here. */
static inline bool os_may_lock(void)
{
    return !IS_ENABLED(CONFIG_PREEMPT_RT) || preemptible();
}

/* deferred_work.c. Calls os_pages_free() or os_meta_free() where locks may be taken. Any
 * context. */
void os_free_later(void *memory, size_t bytes, bool pages);
void os_deferred_work_start(void);
void os_deferred_work_stop(void);

/* idle.c */
void os_idle_stop(void);

/* page_map.c. Extends the map over all present memory, or up to the page frame `end` of new memory,
 * before pages of it can be allocated. May sleep. Return false if memory ran out. */
bool os_page_map_cover(void);
bool os_page_map_extend(unsigned long end);
void os_page_map_release(void);
uint64_t os_page_map_bytes(void);

#endif /* OS_KERNEL_H */
