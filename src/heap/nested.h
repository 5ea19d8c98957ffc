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

/* Whether the caller has been called from within the library, by the thread that runs it. */
static inline bool call_is_nested(void)
{
    return unlikely(os_busy - os_hands != os_busy_of_fork) || unlikely(process_starting) ||
           unlikely(nested_depth > NESTED_DEPTH_MOST);
}

/* A block of the side area; NULL: there is no memory. *zeroed: it is known to be zero. Waits for
 * nothing. */
void *nested_alloc(size_t size, size_t alignment, bool *zeroed);

/* Whether the address is in the side area. Any thread, at any time. */
bool nested_has(const void *object);

/* Of a block of the side area, which is live (else a report and the end): what its user may use of
 * it. */
size_t nested_usable(const void *object, const char *what);

/* Ends an object in the slow path. `slab`: NULL: none of ours. `nested`: the call is. True: it was a
 * block of the side area; or the call is nested, and it is noted. */
bool nested_end(const struct slab *slab, void *object, bool nested, bool deferred,
                const char *what);

/* Objects that nested calls have freed or deferred: noted, until a call that is not nested takes them
 * from the list and does it. */
struct put_off {
    struct put_off *next;
    void *object;
    const char *what; /* the function that was called, for reports */
    bool deferred;
};
extern HIDDEN struct put_off *nested_put_off; /* atomic */
struct put_off *nested_take_all(void);
struct put_off nested_take(struct put_off *entry); /* frees the entry */

void nested_fork_prepare(void);
void nested_fork_done(void);

#endif /* HEAP_NESTED_H */
