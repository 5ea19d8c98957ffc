/* SPDX-License-Identifier: MIT */
/* The extension red zones puts bytes after each object that no thread may write (see
 * red_zones.c). */
#ifndef GUARD_RED_ZONES_H
#define GUARD_RED_ZONES_H

#include "guard/settings.h"
#include "slab/extension.h"
#include "slab/slab.h"

enum { RED_ZONES_EXTENSION = 6 }; /* number of the extension; side data: sizes asked for */
extern const struct slab_extension red_zones_extension;

#define RED_ZONE ((size_t)8) /* spare bytes after each object */

static inline bool has_red_zones(const struct slab *slab)
{
    return load_relaxed(&slab->extensions) & EXTENSION_BIT(RED_ZONES_EXTENSION);
}

void red_zones_start(void);

#endif /* GUARD_RED_ZONES_H */
