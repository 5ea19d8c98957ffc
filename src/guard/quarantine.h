/* SPDX-License-Identifier: MIT */
/* Quarantine: freed objects rest before they are used again (see quarantine.c). */
#ifndef GUARD_QUARANTINE_H
#define GUARD_QUARANTINE_H

#include "fork_part.h"
#include "guard/settings.h"
#include "slab/extension.h"

enum {
    QUARANTINE_EXTENSION = 10
}; /* number of the extension; the last, because an object rests when all else is done */
extern const struct slab_extension quarantine_extension;

/* Let all objects that rest now leave. With _to, they go to `leave` instead of being freed. */
void quarantine_flush_to(void (*leave)(struct slab *slab, void *object));
void quarantine_flush(void);

extern const struct fork_part quarantine_fork_part;

#endif /* GUARD_QUARANTINE_H */
