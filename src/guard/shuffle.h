/* SPDX-License-Identifier: MIT */
/* The extension shuffle hands freed objects out again in random order (see shuffle.c). */
#ifndef GUARD_SHUFFLE_H
#define GUARD_SHUFFLE_H

#include "guard/settings.h"
#include "slab/extension.h"

enum { SHUFFLE_EXTENSION = 9 }; /* number of the extension */
extern const struct slab_extension shuffle_extension;

/* Checks the resting objects of all caches once more and frees them. */
void shuffle_flush_all(void);

#endif /* GUARD_SHUFFLE_H */
