/* SPDX-License-Identifier: MIT */
/* What a stand-in (nested_interposer.c), the program that it is preloaded to (program_nested.c) and
 * the test (test_nested_calls.py) agree on. */
#ifndef NESTED_PHASES_H
#define NESTED_PHASES_H

#include <stddef.h>
#include <stdint.h>

/* When a function was called. */
enum { NESTED_START, NESTED_RUN, NESTED_EXIT, NESTED_PHASES };

struct nested_counts {
    uint64_t calls[NESTED_PHASES];
};
#define NESTED_COUNTS_FD 200

/* How often a stand-in calls itself, at most. */
#ifndef NESTED_MORE
#define NESTED_MORE 0
#endif
/* With NESTED_PRUDENCE: the functions of libprudence in place of malloc's. */
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

/* Of Prudence, where it is loaded. */
void prudence_free_deferred(void *object) __attribute__((weak));
void prudence_read_lock(void) __attribute__((weak));
void prudence_read_unlock(void) __attribute__((weak));
void prudence_synchronize(void) __attribute__((weak));
size_t prudence_trim(void) __attribute__((weak));
size_t prudence_usable_size(const void *object) __attribute__((weak));

/* By the program: another phase begins. What the stand-in has kept is checked and freed. */
void nested_phase(int now) __attribute__((weak));

#endif /* NESTED_PHASES_H */
