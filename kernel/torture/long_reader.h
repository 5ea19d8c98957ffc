/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A reader whose sections are long, and so are grace periods: for prudence_pressure and prudence_bench. */
#ifndef PRUDENCE_LONG_READER_H
#define PRUDENCE_LONG_READER_H

#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

/* A thread's function; `section_ms` is an unsigned int: how long each section lasts. */
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
