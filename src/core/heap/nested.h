/* SPDX-License-Identifier: MIT */
/* Nested calls, that is, calls of malloc and related functions from within the library (see
 * nested.c). */
#ifndef HEAP_NESTED_H
#define HEAP_NESTED_H

#include "heap/heap.h"

/* Depth of this thread in slow paths of allocations. A constructor may allocate, so a depth above
 * one is ordinary. But a replacement of a libc function that allocates whenever it is called could
 * recurse forever. */
extern HIDDEN __thread unsigned nested_depth __attribute__((tls_model("initial-exec")));
#define NESTED_DEPTH_MOST 8

/* Returns whether this thread called the caller from within the library. */
static inline bool call_is_nested(void)
{
    return unlikely(os_busy - os_hands != os_busy_of_fork) || unlikely(process_starting) ||
           unlikely(nested_depth > NESTED_DEPTH_MOST);
}

/* Allocates a block of the side area, or returns NULL if there is no memory. Sets *zeroed if the
 * block is known to be zero. Never waits. */
void *nested_alloc(size_t size, size_t alignment, bool *zeroed);

/* Returns whether the address is in the side area. Any thread may call this at any time. */
bool nested_has(const void *object);

/* Returns the usable bytes of a block of the side area. Reports a block that is not live and ends
 * the process. */
size_t nested_usable(const void *object, const char *what);

/* Frees or defers an object of the side area, or notes an object of a nested call for later.
 * Returns false for all others. `slab` is NULL if no slab has the object; `nested` shows whether
 * the call is nested. */
bool nested_end(const struct slab *slab, void *object, bool nested, bool deferred,
                const char *what);

/* An object that a nested call has freed or deferred, noted until a call that is not nested takes
 * the entry from the list and carries it out. */
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
