/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A reader with long sections, which make grace periods long. Used by prudence_pressure and
 * prudence_bench. */
#ifndef PRUDENCE_LONG_READER_H
#define PRUDENCE_LONG_READER_H

#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

/* Thread function. `section_ms` points to an unsigned int, the length of each section in ms. */
static inline int read_long(void *section_ms)
{
    while (!kthread_should_stop()) {
        rcu_read_lock();
        mdelay(*(unsigned int *)section_ms);
        rcu_read_unlock();
        schedule_timeout_interruptible(1);
    }
    return 0;
}

#endif /* PRUDENCE_LONG_READER_H */
