/* SPDX-License-Identifier: MIT */
/* Objects of any size on top of slab caches. Private to heap/ and the layers above. */
#ifndef HEAP_HEAP_H
#define HEAP_HEAP_H

#include "process.h"
#include "slab/extension.h"
#include "slab/slab.h"

/* Serializes the creation of caches: of size classes, of the cache of large blocks, and of all
 * others, none of which may be made while a start option changes (size_class.c). */
extern struct os_lock heap_lock;

/* Blocks of whole pages (large.c). */
void *large_alloc(size_t size, size_t alignment, bool *zeroed);
void *large_alloc_grown(size_t size, size_t room);
bool large_resize(struct slab *slab, size_t size);
size_t large_growing(size_t size);
static inline bool is_large(const struct slab *slab)
{
    return !slab->cache->percpu;
}

/* Returns the bytes that the object's user may use, or the size asked for if that is known. */
static inline size_t object_usable(const struct slab *slab, const void *object)
{
    size_t asked =
        unlikely(load_relaxed(&slab->extensions)) ? extensions_size_asked(slab, object) : 0;

    return asked ? asked : slab_usable_bytes(slab);
}

#endif /* HEAP_HEAP_H */
