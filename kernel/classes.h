/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* From a size to its cache: the powers of two from 8 bytes to a page, and 96 and 192. */
#ifndef PRUDENCE_CLASSES_H
#define PRUDENCE_CLASSES_H

#include "slab/cache.h"

#define CLASS_SIZE_MAX ((size_t)4096)
#define CLASS_STEP     8 /* a table in such steps up to 192, powers of two above */
#define CLASS_TABLE    (192 / CLASS_STEP + 1)
#define CLASSES_ABOVE  5 /* 256 to 4096 */

extern struct prudence_cache *kmalloc_small[CLASS_TABLE];
extern struct prudence_cache *kmalloc_above[CLASSES_ABOVE];
extern struct prudence_cache *kmalloc_blocks;

/* NULL: a large block. */
static inline struct prudence_cache *kmalloc_class(size_t size)
{
    if (likely(size <= 192))
        return kmalloc_small[(size + CLASS_STEP - 1) / CLASS_STEP];
    return size <= CLASS_SIZE_MAX ? kmalloc_above[fls64(size - 1) - 8] : NULL;
}

#endif /* PRUDENCE_CLASSES_H */
