/* SPDX-License-Identifier: MIT */
/* Informs memcheck, the sanitizers and LeakSanitizer about each object (see annotate.c). */
#ifndef GUARD_ANNOTATE_H
#define GUARD_ANNOTATE_H

#include "fork_part.h"
#include "guard/settings.h"

struct slab;

#define ANNOTATE_REDZONE ((size_t)16) /* spare bytes after each object */

void annotate_start(void);

/*
 * Inform ThreadSanitizer how objects pass from thread to thread (race_detector.h). These keep no
 * notes, so they also work when annotate_on is false.
 *   - passes: everything that owners did with the object so far happens before anything the next
 *     owner does; the caller no longer writes to the object.
 *   - taken: this thread owns the object now.
 *   - safe: like taken, and the object's readers have ended their sections.
 */
void annotate_passes(const struct slab *slab, const void *object);
void annotate_taken(const struct slab *slab, const void *object);
void annotate_safe(const struct slab *slab, const void *object);

/* Do the same for pages, which become other objects of another slab, and for all objects of a new
 * slab. */
void annotate_pages_taken(void);
void annotate_pages_pass(const struct slab *slab);
void annotate_all_pass(const struct slab *slab);

/* Begin and end a slab, except a slab of a lone object. */
bool annotate_made(struct slab *slab);
void annotate_going(struct slab *slab);

/* Opens all pages of a slab, for a caller that overwrites them before annotate_going(). */
void annotate_open(const struct slab *slab);

/* Says that the program may use `size` bytes; `defined` says that they have a value. */
void annotate_allocated(struct slab *slab, void *object, size_t size, bool defined);

/* Keeps an object from being a leak until released, wherever the program's pointers lead. Called
 * for deferred objects and objects with an expiration date. */
void annotate_held(const struct slab *slab, void *object);

/*
 * Make LeakSanitizer search memory of the library, other than slabs, that may hold the program's
 * pointers. LeakSanitizer ends the process if a region ends that never began, so memory that may be
 * made before the process has started must remember the answer of annotate_root_begins().
 */
bool annotate_root_begins(const void *place, size_t bytes);
void annotate_root_ends(const void *place, size_t bytes);

/* Says that the object was freed or is safe, so any access is an error. */
void annotate_released(struct slab *slab, void *object);

/* Returns the bytes that the allocation asked for, or 0 if the slab has no notes. */
size_t annotate_size(const struct slab *slab, const void *object);

extern const struct fork_part annotate_fork_part;

#endif /* GUARD_ANNOTATE_H */
