/* SPDX-License-Identifier: MIT */
/*
 * All loads and stores of a piece of code, as the processor sees them: what is looked at is protected, so each access
 * faults; the fault says where and whether it is a store; the instruction then runs alone (trap flag), with its page
 * open, and the page is closed again. So nothing is decoded or instrumented: it is the program as it was built that is
 * looked at, with its restartable sequences, locked instructions and calls of libc. A page is opened for reading
 * first, so an instruction that loads and stores is found to do both.
 *
 * Looked at are the program's own data, and all memory that it has mapped when a trace begins; not the stack and
 * thread-local memory of the thread, which are its own; nor the pages of `own`, the tracer's and the test's. One
 * thread; the others must sleep. No system call may be given memory that is looked at.
 *
 * x86-64, no sanitizer.
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
    uintptr_t address; /* of its first byte */
    uint32_t turn;     /* of the last memory_trace_turn() */
    bool store;
};

/* `own`: page-aligned. The accesses from begin to end: *count of them, until the next begin. */
void memory_trace_begin(const void *own, size_t bytes);
const struct memory_access *memory_trace_end(size_t *count);

/* In between; off at first. */
void memory_trace_on(void);
void memory_trace_off(void);
size_t memory_trace_count(void); /* accesses so far */

/* What follows is noted with this number. */
void memory_trace_turn(uint32_t turn);

#endif /* TESTS_SUPPORT_MEMORY_TRACE_H */
