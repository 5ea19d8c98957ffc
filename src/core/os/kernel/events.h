/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Lists the events of src/core/slab (os_event), which kernel/trace.c turns into tracepoints. */
#ifndef OS_KERNEL_EVENTS_H
#define OS_KERNEL_EVENTS_H

#define OS_EVENTS(event)                                                                           \
    event(refill) event(flush) event(merge) event(close) event(overflow) event(preflush)           \
        event(premovement) event(grow) event(shrink) event(pressure_wait) event(pressure_done)     \
            event(throttle_wait) event(throttle_done)

#define OS_EVENT_DECLARE(name) void os_event_##name(const char *cache, unsigned int count);
OS_EVENTS(OS_EVENT_DECLARE)

#endif /* OS_KERNEL_EVENTS_H */
