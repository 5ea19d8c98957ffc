// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Turns the events of src/core/slab into tracepoints. Includes only kernel headers, because the
 * tracepoint headers use the kernel's lists. */
#define CREATE_TRACE_POINTS
#include "trace.h"

#include "events.h"

#define DEFINE_OS_EVENT(name)                                                                      \
    void os_event_##name(const char *cache, unsigned int count)                                    \
    {                                                                                              \
        trace_prudence_##name(cache, count);                                                       \
    }
OS_EVENTS(DEFINE_OS_EVENT)
