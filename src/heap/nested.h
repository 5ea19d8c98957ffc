/* SPDX-License-Identifier: MIT */
/*
 * Nested calls: malloc and its relatives, called from within the library (see nested.c).
 */
#ifndef HEAP_NESTED_H
#define HEAP_NESTED_H

#include "heap/heap.h"

/* How deep this thread is in slow paths of allocations. A constructor may allocate, so more than
 * one is nothing special. But a function that stands in for libc's and allocates whenever it is
 * called may come back for ever. */
extern HIDDEN __thread unsigned nested_depth __attribute__((tls_model("initial-exec")));
#define NESTED_DEPTH_MOST 8

/* Frees that nested calls have put off; atomic. */
struct put_off;
extern HIDDEN struct put_off *nested_put_off;
void nested_settle(void);

/* Whether the caller has been called from within the library, by the thread that runs it. If not,
 * frees that were put off are done now. */
static inline bool call_is_nested(void)
{
    if (unlikely(os_busy != os_busy_of_fork) || unlikely(process_starting) ||
        unlikely(nested_depth > NESTED_DEPTH_MOST))
        return true;
    if (unlikely(load_relaxed(&nested_put_off)))
        nested_settle();
    return false;
}

/* A block of the side area; NULL: there is no memory. *zeroed: it is known to be zero. Waits for
 * nothing. */
void *nested_alloc(size_t size, size_t alignment, bool *zeroed);

/* Whether the address is in the side area. Any thread, at any time. */
bool nested_has(const void *object);

/* Of a block of the side area, which is live (else a report and the end): what its user may use of
 * it. */
size_t nested_usable(const void *object, const char *what);

/* For frees and deferrals that have come to the slow path. `slab`: NULL: none of ours. True: done,
 * or put off. False: the object is a slab's, or nobody's, and the call is not nested. */
bool nested_free(const struct slab *slab, void *object, const char *what);
bool nested_free_deferred(const struct slab *slab, void *object, const char *what);

void nested_fork_prepare(void);
void nested_fork_done(void);

#endif /* HEAP_NESTED_H */
