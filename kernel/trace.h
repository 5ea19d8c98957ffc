/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Tracepoints, named after the terms of docs/explanation/design.md. Each records the cache and
 * the number of objects that moved. The cache's field has the same name as in the kernel's kmem
 * events. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM prudence

#if !defined(PRUDENCE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define PRUDENCE_TRACE_H

#include <linux/tracepoint.h>

#include "compat_trace.h"

DECLARE_EVENT_CLASS(prudence_objects,
    TP_PROTO(const char *name, unsigned int nr_objects),
    TP_ARGS(name, nr_objects),
    TP_STRUCT__entry(
        __string(name, name)
        __field(unsigned int, nr_objects)
    ),
    TP_fast_assign(
        compat_assign_str(name, name);
        __entry->nr_objects = nr_objects;
    ),
    TP_printk("name=%s nr_objects=%u", __get_str(name), __entry->nr_objects)
);

#define PRUDENCE_EVENT(event)                                                                      \
    DEFINE_EVENT(prudence_objects, prudence_##event,                                               \
        TP_PROTO(const char *name, unsigned int nr_objects),                                       \
        TP_ARGS(name, nr_objects))

PRUDENCE_EVENT(refill);
PRUDENCE_EVENT(flush);
PRUDENCE_EVENT(merge);
PRUDENCE_EVENT(close);
PRUDENCE_EVENT(overflow);
PRUDENCE_EVENT(preflush);
PRUDENCE_EVENT(premovement);
PRUDENCE_EVENT(grow);
PRUDENCE_EVENT(shrink);
PRUDENCE_EVENT(pressure_wait);
PRUDENCE_EVENT(pressure_done);
PRUDENCE_EVENT(throttle_wait);
PRUDENCE_EVENT(throttle_done);

#endif /* PRUDENCE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
