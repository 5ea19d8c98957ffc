/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A slab is a run of pages cut into equal objects. Two bitmaps, its latent slab, hold the deferred
 * ones. */
#ifndef SLAB_SLAB_H
#define SLAB_SLAB_H

#include "base/bits.h"
#include "base/grid.h"
#include "base/list.h"
#include "gp/gp.h"
#include "os/os.h"
#include "slab/cache_type.h"

/* Invariants (under the node's lock): |free| = slab->free; |waiting| + |next| = slab->latent;
 * named <= latent; the three bitmaps are disjoint; list = list_for(slab); the slab is in
 * node->waiting exactly when |waiting| > 0; next is empty if waiting is. */
struct slab {
    /* Read by every free. Constant, except `fast_percpu`, and until a large block is resized. */
    struct prudence_cache *cache;
    char *base; /* the first object */
    struct grid grid;
    void *fast_percpu; /* as in the cache; closed if the slab has extensions that the cache lacks */
    uint32_t capacity; /* objects */
    uint16_t node;
    bool alone; /* one object, on pages of the extension that made it; never in CPUs' caches */
    uint8_t
        margin_pages; /* in units of OS_PAGE_SIZE, after a large block; no thread may touch them */
    void *pages;
    size_t bytes;
    /* Changed when objects move between the node and CPUs' caches, so these have a line of their
     * own. */
    /* Objects; under the node's lock, like all below. */
    uint32_t free __attribute__((aligned(CACHE_LINE)));
    uint32_t latent;  /* objects in waiting and next */
    uint8_t list;     /* enum slab_list (node_lists.h) */
    bool changing;    /* large blocks only; see slab_large_resize() */
    bool hurried : 1; /* lone objects only: a deferral drives the grace period; constant */
    /* Since an object came or went last, a round of decay has seen the slab; it was found to have
     * no hollow pages; or these were purged. At most one. */
    bool idle : 1, solid : 1, hollowed : 1;
    uint8_t named;       /* latent objects that the account leaves out (latent_slab.c) */
    uint32_t extensions; /* one bit each (extension.h); atomic */
    /* Hints for node_choose.c; atomic. Number of live objects that are about to be freed ... */
    uint32_t leaving;
    int32_t may_leave; /* ... and of live objects with an expiration date; inexact */
    gp_cookie waiting_cookie;
    gp_cookie free_cookie; /* in type-safe memory, when the pages of a free slab may go */
    struct list link;      /* in a list of the node */
    struct list waiting_link;
    void *side[OS_EXTENSION_SIDES]; /* one word for each of the first extensions */
    uint64_t bits[];                /* free, waiting, next, with bits_words(capacity) words each */
    /* ... and for CACHE_COMMON an owner of each object */
};

/* Called when free objects of the slab change, under the node's lock. Seldom stores. */
static inline void slab_touched(struct slab *slab)
{
    if (unlikely(slab->idle) || unlikely(slab->solid) || unlikely(slab->hollowed))
        slab->idle = slab->solid = slab->hollowed = false;
}

static inline uint64_t *slab_free_bits(struct slab *slab)
{
    return slab->bits;
}

static inline uint64_t *slab_waiting_bits(struct slab *slab)
{
    return slab->bits + bits_words(slab->capacity);
}

static inline uint64_t *slab_next_bits(struct slab *slab)
{
    return slab->bits + (size_t)2 * bits_words(slab->capacity);
}

/* Returns, for each object, the cold cache that has it; NULL, or for reports the one that had it
 * last, marked, if the object is not live. Each is atomic. Slabs of CACHE_COMMON only. */
static inline struct prudence_cache **slab_owners(const struct slab *slab)
{
    return (struct prudence_cache **)(slab->bits + (size_t)3 * bits_words(slab->capacity));
}

static inline struct prudence_cache *slab_owner_past(const struct prudence_cache *owner)
{
    return (struct prudence_cache *)((uintptr_t)owner | 1);
}

static inline bool slab_owner_is_past(const struct prudence_cache *owner)
{
    return (uintptr_t)owner & 1;
}

static inline const struct prudence_cache *slab_owner_of_past(const struct prudence_cache *past)
{
    return (const struct prudence_cache *)((uintptr_t)past & ~(uintptr_t)1);
}

static inline uint64_t slab_offset(const struct slab *slab, const void *object)
{
    return (uint64_t)((const char *)object - slab->base);
}

/* Returns whether an address in the slab's pages is the start of an object. */
static inline bool slab_has(const struct slab *slab, const void *object)
{
    return grid_has(slab->grid, slab_offset(slab, object));
}

static inline unsigned slab_index(const struct slab *slab, const void *object)
{
    return grid_index(slab->grid, slab_offset(slab, object));
}

static inline void *slab_object(const struct slab *slab, unsigned index, size_t stride)
{
    return slab->base + index * stride;
}

/* Return the bytes before and after a large block that no thread may touch. */
static inline size_t slab_front_margin(const struct slab *slab)
{
    return (size_t)(slab->base - (char *)slab->pages);
}

static inline size_t slab_back_margin(const struct slab *slab)
{
    return slab->margin_pages * OS_PAGE_SIZE;
}

/* Returns the bytes that one object takes. Margins of a large block do not count, because they have
 * no memory. */
static inline size_t slab_object_bytes(const struct slab *slab)
{
    return slab->cache->percpu ? slab->cache->body->stride
                               : slab->bytes - slab_front_margin(slab) - slab_back_margin(slab);
}

/* Returns the bytes of an object that a user may use. They exclude the line that spreads some
 * strides (ADR 3), the red zone and margins. */
static inline size_t slab_usable_bytes(const struct slab *slab)
{
    const struct prudence_cache *cache = slab->cache;

    if (!cache->percpu)
        return slab_object_bytes(slab);
    return round_up(cache->object_size + cache->body->redzone, cache->alignment) -
           cache->body->redzone;
}

/* ------------------------------------------------------------------- from an object to its slab */

/* Returns the slab of an object that is known to be ours. Returns NULL in a kernel only, after
 * reporting that the object was freed twice and its slab has gone. */
static inline struct slab *slab_known(const void *object)
{
    struct slab *slab = os_page_owner_of_object(object);

    if (unlikely(!slab)) {
        os_report_misuse("object %p has lost its slab: was it freed twice?", object);
        os_misuse();
    }
    return slab;
}

/* Returns the slab of an object of any cache, or NULL for misuse. */
static inline struct slab *slab_of(const void *object)
{
    struct slab *slab = os_page_owner_of_object(object);

    return likely(slab && slab_has(slab, object)) ? slab : NULL;
}

/* Returns the slab of an object of `cache`, or NULL for misuse. */
static inline struct slab *slab_of_cache(const struct prudence_cache *cache, const void *object)
{
    struct slab *slab = os_page_owner_of_object(object);

    return likely(slab && slab->cache == cache && slab_has(slab, object)) ? slab : NULL;
}

/* ---------------------------------------------------------------------------- making: slab.c */

struct slab *slab_make(struct prudence_cache *cache, unsigned node, size_t bytes, size_t alignment,
                       size_t margin, bool *zeroed, os_alloc_flags flags);
void slab_unmake(struct slab *slab);
/* Do the same in two steps, for a slab without extensions and not of CACHE_COMMON. The cache may go
 * in between. */
void slab_leave_cache(struct slab *slab);
void slab_unmake_left(struct slab *slab);

/* slab_memory() returns the bytes of metadata at `slab`. An extension that kept the pages frees the
 * metadata with os_meta_free(). */
size_t slab_memory(const struct slab *slab);
void slab_count(struct prudence_cache *cache);
struct slab *slab_grow(struct prudence_cache *cache, unsigned node, os_alloc_flags flags);
struct slab *slab_make_on(struct prudence_cache *cache, unsigned node, void *pages, size_t bytes,
                          void *object, uint32_t extensions);

#endif /* SLAB_SLAB_H */
