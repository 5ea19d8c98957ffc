/* SPDX-License-Identifier: MIT */
/* The extension closed, for objects of no bytes, which may not be touched (see closed.c). */
#ifndef GUARD_CLOSED_H
#define GUARD_CLOSED_H

#include "slab/extension.h"

enum { CLOSED_EXTENSION = 8 }; /* number of the extension */
extern const struct slab_extension closed_extension;

#endif /* GUARD_CLOSED_H */
