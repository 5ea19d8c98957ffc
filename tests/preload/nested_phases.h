/* SPDX-License-Identifier: MIT */
/* Definitions shared by a stand-in (nested_interposer.c), the program it is preloaded into
 * (program_nested.c) and the test (test_nested_calls.py). */
#ifndef NESTED_PHASES_H
#define NESTED_PHASES_H

#include <stddef.h>
#include <stdint.h>

/* Phase in which a function was called. */
enum { NESTED_START, NESTED_RUN, NESTED_EXIT, NESTED_PHASES };

struct nested_counts {
    uint64_t calls[NESTED_PHASES];
};
#define NESTED_COUNTS_FD 200

/* Maximum of calls of a stand-in by itself. */
#ifndef NESTED_MORE
#define NESTED_MORE 0
#endif
/* With NESTED_PRUDENCE, use libprudence's functions instead of malloc's. */
#ifdef NESTED_PRUDENCE
#define NAMED(name) prudence_##name
#define USABLE      prudence_usable_size
#else
#define NAMED(name) name
#define USABLE      malloc_usable_size
#endif
void *NAMED(malloc)(size_t size);
void *NAMED(calloc)(size_t count, size_t size);
void *NAMED(realloc)(void *block, size_t size);
void *NAMED(aligned_alloc)(size_t alignment, size_t size);
void NAMED(free)(void *block);

/* Defined if Prudence is loaded. */
void prudence_free_deferred(void *object) __attribute__((weak));
void prudence_read_lock(void) __attribute__((weak));
void prudence_read_unlock(void) __attribute__((weak));
void prudence_synchronize(void) __attribute__((weak));
size_t prudence_trim(void) __attribute__((weak));
size_t prudence_usable_size(const void *object) __attribute__((weak));

/* Called by the program when another phase begins. The stand-in checks and frees its blocks. */
void nested_phase(int now) __attribute__((weak));

#endif /* NESTED_PHASES_H */
