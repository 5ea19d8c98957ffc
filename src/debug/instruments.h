/* SPDX-License-Identifier: MIT */
/* The extension instruments: what is done to the memory of free objects, and what tools are told of it (see
 * instruments.c). */
#ifndef DEBUG_INSTRUMENTS_H
#define DEBUG_INSTRUMENTS_H

#include "debug/settings.h"
#include "slab/extension.h"

enum { INSTRUMENTS_EXTENSION = 5 }; /* its number; its side data are annotate.c's */
extern const struct slab_extension instruments_extension;

/* After options of the start were read or set: what is wanted of caches that are made from now on. */
void instruments_start(void);

/* Makes traces possible, if they are wanted. This may allocate, so it is not called from inside an allocation. */
void instruments_prime(void);

/* With states of objects (check.h) and zero_on_free=1: reports a free object that was written. */
void instruments_check_zero(const struct slab *slab, const void *object);

/* Whether a reallocation moves it in any case, so that its bounds stay exact and no byte of it is
 * left as it was. With red zones it need not: they follow its size, and cover what it had. */
bool instruments_move(const struct slab *slab);

#endif /* DEBUG_INSTRUMENTS_H */
