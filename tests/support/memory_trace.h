/* SPDX-License-Identifier: MIT */
/*
 * Traces all loads and stores of a piece of code, as the processor sees them. Traced memory is
 * protected, so each access faults, and the fault shows the address and whether the access is a
 * store. The instruction then runs alone (trap flag) with its page open, and the page is closed
 * again. Nothing is decoded or instrumented, so the trace shows the program as built, with its
 * restartable sequences, locked instructions and libc calls. A page is first opened for reading
 * only, so an instruction that loads and stores is recorded as both.
 *
 * A trace covers the program's own data and all memory mapped when the trace begins, except for the
 * stack and the thread-local memory of the thread, and the pages of the tracer and of the test
 * (`own`). Only one thread may run; the others must sleep. No system call may be given traced
 * memory.
 *
 * Works on x86-64 without sanitizers.
 */
#ifndef TESTS_SUPPORT_MEMORY_TRACE_H
#define TESTS_SUPPORT_MEMORY_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define MEMORY_TRACE_POSSIBLE 1
#else
#define MEMORY_TRACE_POSSIBLE 0
#endif

struct memory_access {
    uintptr_t address; /* of the first byte */
    uint32_t turn;     /* argument of the last memory_trace_turn() */
    bool store;
};

/* Begin and end a trace. `own` is page-aligned. memory_trace_end() returns *count accesses, valid
 * until the next begin. */
void memory_trace_begin(const void *own, size_t bytes);
const struct memory_access *memory_trace_end(size_t *count);

/* Switch tracing on and off between begin and end; off at first. */
void memory_trace_on(void);
void memory_trace_off(void);
size_t memory_trace_count(void); /* accesses so far */

/* Records `turn` with all later accesses. */
void memory_trace_turn(uint32_t turn);

#endif /* TESTS_SUPPORT_MEMORY_TRACE_H */
