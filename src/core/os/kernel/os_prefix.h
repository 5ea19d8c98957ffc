/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Included first in each file of the module (Kbuild, -include). Includes the kernel headers that
 * the layers need and then undefines macros that base also defines, with the same meaning. So
 * no file of base or slab needs to know that it is in a kernel.
 */
#ifndef OS_KERNEL_PREFIX_H
#define OS_KERNEL_PREFIX_H

#include <linux/bitops.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/hardirq.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/kernel_stat.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/math64.h>
#include <linux/memory.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/oom.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/isolation.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/tick.h>
#include <linux/timekeeping.h>
#include <linux/topology.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

/* Runs `run` in a hard interrupt on PREEMPT_RT too. Otherwise a thread per CPU would run it, which
 * is parked while the CPU goes offline; work queued in that time would wait until the CPU is
 * back. */
static inline void os_irq_work_init(struct irq_work *work, void (*run)(struct irq_work *work))
{
    *work = IRQ_WORK_INIT_HARD(run);
}

/* base/base.h and base/list.h define these again, with the same meaning. */
#undef likely
#undef unlikely
#undef container_of
#undef round_up
#undef list_entry
#undef list_for_each
#undef list_for_each_safe

/* Avoids a call to libgcc, which the kernel lacks. */
#define __builtin_popcountll(word) hweight64(word)

#endif /* OS_KERNEL_PREFIX_H */
