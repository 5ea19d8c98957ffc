/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Maps a size to a cache. The classes are the powers of two from 8 bytes to a page, 96 and 192. */
#ifndef PRUDENCE_CLASSES_H
#define PRUDENCE_CLASSES_H

#include "base/base.h"

struct prudence_cache;

#define CLASS_SIZE_MAX ((size_t)4096)
#define CLASS_STEP     8
#define CLASSES        (CLASS_SIZE_MAX / CLASS_STEP + 1)

extern struct prudence_cache *kmalloc_classes[CLASSES]; /* indexed by size in steps, rounded up */
extern struct prudence_cache *kmalloc_blocks;

/* Returns the cache for a size up to CLASS_SIZE_MAX. Larger sizes are blocks. */
static inline struct prudence_cache *kmalloc_class(size_t size)
{
    return *(kmalloc_classes +
             (size + CLASS_STEP - 1) / CLASS_STEP); /* a plain index would be checked by UBSAN */
}

#endif /* PRUDENCE_CLASSES_H */
