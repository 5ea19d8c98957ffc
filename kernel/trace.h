/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Tracepoints, named for the words of docs/explanation/design.md: how many objects moved, in which cache. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM prudence

#if !defined(PRUDENCE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define PRUDENCE_TRACE_H

#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(prudence_objects,
    TP_PROTO(const char *cache, unsigned int count),
    TP_ARGS(cache, count),
    TP_STRUCT__entry(
        __array(char, cache, 32)
        __field(unsigned int, count)
    ),
    TP_fast_assign(
        strscpy(__entry->cache, cache, 32);
        __entry->count = count;
    ),
    TP_printk("cache=%s objects=%u", __entry->cache, __entry->count)
);

#define PRUDENCE_EVENT(name)                                                                       \
    DEFINE_EVENT(prudence_objects, prudence_##name,                                                \
        TP_PROTO(const char *cache, unsigned int count),                                           \
        TP_ARGS(cache, count))

PRUDENCE_EVENT(refill);
PRUDENCE_EVENT(flush);
PRUDENCE_EVENT(merge);
PRUDENCE_EVENT(close);
PRUDENCE_EVENT(overflow);
PRUDENCE_EVENT(preflush);
PRUDENCE_EVENT(premovement);
PRUDENCE_EVENT(grow);
PRUDENCE_EVENT(shrink);

#endif /* PRUDENCE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
