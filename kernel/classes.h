/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* From a size to its cache: the powers of two from 8 bytes to a page, and 96 and 192. */
#ifndef PRUDENCE_CLASSES_H
#define PRUDENCE_CLASSES_H

#include "base/base.h"

struct prudence_cache;

#define CLASS_SIZE_MAX ((size_t)4096)
#define CLASS_STEP     8
#define CLASSES        (CLASS_SIZE_MAX / CLASS_STEP + 1)

extern struct prudence_cache *kmalloc_classes[CLASSES]; /* by size, in steps, rounded up */
extern struct prudence_cache *kmalloc_blocks;

/* Of a size up to CLASS_SIZE_MAX; above that there are only blocks. */
static inline struct prudence_cache *kmalloc_class(size_t size)
{
    return *(kmalloc_classes +
             (size + CLASS_STEP - 1) / CLASS_STEP); /* UBSAN would check an index */
}

#endif /* PRUDENCE_CLASSES_H */
