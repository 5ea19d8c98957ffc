/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Hides the differences between the timers of kernels 6.1 to 7.3. */
#ifndef PRUDENCE_COMPAT_TIMER_H
#define PRUDENCE_COMPAT_TIMER_H

#include <linux/hrtimer.h>
#include <linux/timer.h>
#include <linux/version.h>

/* The timer runs in hard interrupts even if the kernel threads interrupts. */
static inline void compat_hrtimer_setup(struct hrtimer *timer,
                                        enum hrtimer_restart (*function)(struct hrtimer *timer))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
    hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
#else
    hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
    timer->function = function;
#endif
}

static inline void compat_timer_delete_sync(struct timer_list *timer)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
    timer_shutdown_sync(timer);
#else
    del_timer_sync(timer);
#endif
}

#endif /* PRUDENCE_COMPAT_TIMER_H */
