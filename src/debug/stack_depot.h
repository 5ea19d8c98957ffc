/* SPDX-License-Identifier: MIT */
/* The stack depot: traces, each kept once, by number (see depot.c). */
#ifndef DEBUG_STACK_DEPOT_H
#define DEBUG_STACK_DEPOT_H

#include "debug/settings.h"

/* The number of the trace that led here; 0 when it is not known. */
uint32_t stack_depot_here(void);

/* The same, from the caller of a function that is running; `frame_address`: of os_trace_capture_from(); NULL: it is not known. */
uint32_t stack_depot_from(const void *frame_address);

/* The frames of trace `number`, which stay; how many. Async-signal-safe. */
unsigned stack_depot_trace(uint32_t number, void *const **frames);

/* Writes trace `number` to standard error under `title`. */
void stack_depot_print(const char *title, uint32_t number);
void stack_depot_print_frames(uint32_t number); /* without a title */

/* Writes who allocated and who released the object that has this word (debug/check.h). */
void stack_depot_print_word(uint64_t word);

#endif /* DEBUG_STACK_DEPOT_H */
