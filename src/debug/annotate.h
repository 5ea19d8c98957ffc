/* SPDX-License-Identifier: MIT */
/* Telling Valgrind's memcheck and AddressSanitizer about each object (see annotate.c). */
#ifndef DEBUG_ANNOTATE_H
#define DEBUG_ANNOTATE_H

#include "debug/settings.h"

struct slab;

#define ANNOTATE_REDZONE ((size_t)16) /* spare bytes behind each object */

extern bool annotate_on; /* one of the tools is here, and is told */

void annotate_start(void);

/*
 * ThreadSanitizer is told how objects pass from thread to thread (race_detector.h). Nothing is kept for that, so it
 * may be on where annotate_on is not.
 *   - passes: what all its owners did with the object so far is before what its next owner does; the caller writes to
 *     it no more.
 *   - taken: this thread owns it now.
 *   - safe: as taken, and its readers have left their sections.
 */
void annotate_passes(const struct slab *slab, const void *object);
void annotate_taken(const struct slab *slab, const void *object);
void annotate_safe(const struct slab *slab, const void *object);

/* The same for pages, which become other objects of another slab, and for all objects of a new slab. */
void annotate_pages_taken(void);
void annotate_pages_pass(const struct slab *slab);
void annotate_all_pass(const struct slab *slab);

/* When a slab is made and goes, unless it is a guarded object's. */
bool annotate_made(struct slab *slab);
void annotate_going(struct slab *slab);

/* Before annotate_going, by a caller that writes the whole of the slab's pages. */
void annotate_open(const struct slab *slab);

/* From now on the program may use `size` bytes; `defined`: their contents mean something. */
void annotate_allocated(struct slab *slab, void *object, size_t size, bool defined);

/* Until it is released it is no leak, whatever the program points to: it is deferred, or has an expiration date. */
void annotate_held(const struct slab *slab, void *object);

/*
 * Some of the library's memory, beside slabs, that may have the program's pointers: LeakSanitizer looks there. It ends the process if
 * something ends that has not begun, so what may be made before the process has started remembers the answer: whether it
 * has begun.
 */
bool annotate_root_begins(const void *place, size_t bytes);
void annotate_root_ends(const void *place, size_t bytes);

/* Freed, or its grace period is over: any access is an error. */
void annotate_released(struct slab *slab, void *object);

void annotate_fork_prepare(void);
void annotate_fork_done(void);

/* What was asked for when the object was allocated; 0 when no notes are kept of its slab. */
size_t annotate_size(const struct slab *slab, const void *object);

#endif /* DEBUG_ANNOTATE_H */
