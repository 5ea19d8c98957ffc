/* SPDX-License-Identifier: MIT */
/* Quarantine: freed objects rest before they are used again (see quarantine.c). */
#ifndef DEBUG_QUARANTINE_H
#define DEBUG_QUARANTINE_H

#include "debug/settings.h"
#include "slab/extension.h"

enum {
    QUARANTINE_EXTENSION = 10
}; /* its number; the last: an object rests when all else is done */
extern const struct slab_extension quarantine_extension;

/* All objects that rest now leave. _to: they go to `leave`, instead of being freed. _and_wait: those that other
 * threads are just freeing have left, too. */
void quarantine_flush_to(void (*leave)(struct slab *slab, void *object));
void quarantine_flush(void);
void quarantine_flush_and_wait(void);

void quarantine_fork_prepare(void);
void quarantine_fork_child(bool whole);
void quarantine_fork_done(void);

#endif /* DEBUG_QUARANTINE_H */
