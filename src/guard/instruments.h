/* SPDX-License-Identifier: MIT */
/* The extension instruments zeroes the memory of free objects, and informs tools about objects (see
 * instruments.c). */
#ifndef GUARD_INSTRUMENTS_H
#define GUARD_INSTRUMENTS_H

#include "guard/settings.h"
#include "slab/extension.h"

enum { INSTRUMENTS_EXTENSION = 5 }; /* number of the extension; annotate.c owns the side data */
extern const struct slab_extension instruments_extension;

/* Chooses the instruments of caches made from now on. Called after start options were read or
 * set. */
void instruments_start(void);

/* Makes traces possible, if they are wanted. Not called from inside an allocation, because it may
 * allocate. */
void instruments_prime(void);

/* Reports a free object that was written. Needs states of objects (check.h) and zero_on_free=1. */
void instruments_check_zero(const struct slab *slab, const void *object);

#endif /* GUARD_INSTRUMENTS_H */
