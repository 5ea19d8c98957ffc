/* SPDX-License-Identifier: MIT */
/* Telling Valgrind's memcheck and AddressSanitizer about each object (see annotate.c). */
#ifndef HEAP_ANNOTATE_H
#define HEAP_ANNOTATE_H

#include "heap/heap.h"

#define ANNOTATE_REDZONE ((size_t)16) /* spare bytes behind each object */

extern bool annotate_wanted; /* the option annotate */
extern bool annotate_on;     /* one of the tools is here, and is told */

void annotate_start(void);

/* slab_watch.made and .going, for slabs that are not guarded. */
bool annotate_made(struct slab *slab);
void annotate_going(struct slab *slab);

/* Before annotate_going, by who writes the whole of the slab's pages. */
void annotate_open(const struct slab *slab);

/* From now on the program may use `size` bytes; `defined`: their contents mean something. */
void annotate_allocated(struct slab *slab, void *object, size_t size, bool defined);

/* Deferred: readable as before, and no leak. */
void annotate_deferred(struct slab *slab, void *object);

/* Freed, or its grace period is over: any access is an error. */
void annotate_released(struct slab *slab, void *object);

void annotate_fork_prepare(void);
void annotate_fork_done(void);

/* What was asked for when the object was allocated; 0 when no notes are kept of its slab. */
size_t annotate_size(const struct slab *slab, const void *object);

#endif /* HEAP_ANNOTATE_H */
