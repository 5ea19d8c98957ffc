/* SPDX-License-Identifier: MIT */
/*
 * Informs ThreadSanitizer how objects change hands, if the program is built with it and the library
 * is not. It sees the program's accesses to objects, but none of the atomics by which the library
 * passes an object, or the end of a section, from one thread to another. So both ends of each such
 * transfer name an address: everything a thread did before tell_release(a) happens before
 * everything a thread does after a later tell_acquire(a).
 *
 * A library built with ThreadSanitizer says nothing, because then the library's own synchronization
 * is checked.
 */
#ifndef OS_POSIX_RACE_DETECTOR_H
#define OS_POSIX_RACE_DETECTOR_H

#include "base/base.h"

extern bool race_detector_on;

/* Searches for ThreadSanitizer. Called before any cache is made, and when the option `annotate`
 * changes. */
void race_detector_start(bool wanted);

/* Returns whether the process has ThreadSanitizer, whatever `annotate` says. */
bool race_detector_is_there(void);

void race_detector_release(const void *address);
void race_detector_acquire(const void *address);

static inline void tell_release(const void *address)
{
    if (unlikely(race_detector_on))
        race_detector_release(address);
}

static inline void tell_acquire(const void *address)
{
    if (unlikely(race_detector_on))
        race_detector_acquire(address);
}

/* Stands for all pages that belong to no object. Mapping pages counts as a write to them. */
extern const char race_detector_pages;

/* Zero, copy and fill the library's own memory that passes between threads unseen.
 * ThreadSanitizer also sees the accesses of libc's functions, so the library cannot use those. */
void race_detector_fill(void *at, char byte, size_t bytes);
void race_detector_copy(void *to, const void *from, size_t bytes);
void race_detector_move(void *to, const void *from, size_t bytes); /* ranges may overlap */

static inline void fill_unseen(void *at, char byte, size_t bytes)
{
    if (unlikely(race_detector_on))
        race_detector_fill(at, byte, bytes);
    else
        __builtin_memset(at, byte, bytes);
}

static inline void copy_unseen(void *to, const void *from, size_t bytes)
{
    if (unlikely(race_detector_on))
        race_detector_copy(to, from, bytes);
    else
        __builtin_memcpy(to, from, bytes);
}

static inline void move_unseen(void *to, const void *from, size_t bytes)
{
    if (unlikely(race_detector_on))
        race_detector_move(to, from, bytes);
    else
        __builtin_memmove(to, from, bytes);
}

#endif /* OS_POSIX_RACE_DETECTOR_H */
