/* SPDX-License-Identifier: MIT */
/* Modules that kept traces lead through, also after they were unloaded (see loaded.c). */
#ifndef OS_POSIX_LOADED_H
#define OS_POSIX_LOADED_H

#include "base/base.h"

#if defined(__GLIBC__) && defined(__LP64__)
#if __GLIBC_PREREQ(2, 35)
#define LOADED_KNOWN 1
#endif
#endif
#ifndef LOADED_KNOWN
#define LOADED_KNOWN 0
#endif

/* Constant once it can be found. */
struct loaded {
    struct loaded *older; /* NULL for the first */
    uintptr_t start, end; /* of all its addresses */
    /* The mapping of the code that a trace met first; 0 if unknown. */
    uintptr_t code_start, code_end, code_offset;
    uint32_t number; /* from 1 on */
    uint32_t rank;
    char name[];
};

/* Returns the module that had the code of `frame`, a return address, in a trace of that rank, or
 * NULL if unknown. */
const struct loaded *loaded_of(const void *frame, unsigned rank);

/* Returns whether the module was unloaded, perhaps while another was loaded in its place. */
bool loaded_is_gone(const struct loaded *one);

/* Returns the next module of all, or NULL after the last. Begin with NULL. */
const struct loaded *loaded_next(const struct loaded *one);

void loaded_fork_child(void); /* another thread may have been adding a module */

#endif /* OS_POSIX_LOADED_H */
