/* SPDX-License-Identifier: MIT */
/* The stack depot keeps each trace once, by number (see stack_depot.c). */
#ifndef GUARD_STACK_DEPOT_H
#define GUARD_STACK_DEPOT_H

#include "guard/settings.h"

#define TRACE_BITS 30 /* of the number of a trace */

#define DEPOT_BYTES   ((size_t)16 << 20)
#define DEPOT_WORDS   (DEPOT_BYTES / sizeof(uint64_t))
#define DEPOT_BUCKETS ((size_t)1 << 14)

struct trace {
    uint32_t next; /* next in the bucket; 0 if none */
    uint32_t hash;
    uint32_t count;
    uint32_t rank; /* of its modules (os_trace_rank) */
    void *frames[];
};

/* Made when the first trace is kept, so that a process without traces has no memory here to lock
 * (mlockall). */
struct depot {
    uint32_t buckets[DEPOT_BUCKETS]; /* atomic */
    uint64_t words[DEPOT_WORDS];
};
extern struct depot *stack_depot_kept; /* atomic; watchers read it */

/* Returns the number of the trace that led here, or 0 if unknown. */
uint32_t stack_depot_here(void);

/* Returns the number of the trace from the caller of a running function on. `frame_address` is as
 * for os_trace_capture_from(), or NULL if unknown. */
uint32_t stack_depot_from(const void *frame_address);

/* Returns trace `number`, which stays, or NULL if it is unknown. Async-signal-safe. */
const struct trace *stack_depot_trace(uint32_t number);

/* Writes trace `number` to standard error under `title`. */
void stack_depot_print(const char *title, uint32_t number);
void stack_depot_print_frames(uint32_t number); /* without a title */

#endif /* GUARD_STACK_DEPOT_H */
