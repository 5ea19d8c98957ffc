/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The type of slab caches, without functions of any file, so that all files may include it.
 *
 * A slab cache holds all objects of one size. Structures, from the CPU down to the page:
 *
 *   prudence_cache  the caches of all CPUs, and the nodes
 *   cpu_cache       the object cache (a stack) and latent cache (a ring) of a CPU: cpu_cache.h
 *   batch           objects deferred together, under one cookie: cpu_cache.h
 *   node            a NUMA node's lists of slabs, and their lock: node_lists.h
 *   slab            a run of pages cut into equal objects, and its latent slab: slab.h
 *   transfer batch  latent objects on their way from the idle helper to a node: transfer_batch.h
 *
 * NAME.h declares the functions of NAME.c, except that slow_path.h declares those in alloc.c,
 * free.c and defer.c, and start.h those in fork.c. docs/explanation/design.md says which file may
 * use which.
 *
 * At any time an object is in exactly one place. It is live (with the caller), on a stack, in a
 * ring, in a transfer batch, or in its slab, where it is free, waiting or next. A slab calls an
 * object "allocated" unless the free bit is set, and "latent" when the object is waiting or next.
 */
#ifndef SLAB_CACHE_TYPE_H
#define SLAB_CACHE_TYPE_H

#include "base/grid.h"
#include "base/list.h"
#include "os/os.h"
#include "slab/figures.h"

#define CACHE_NAME_SIZE 32
#define OBJECT_SIZE_MAX OS_OBJECT_SIZE_MAX

/* Most objects that move between a CPU's caches and a node at a time. The mover copies them on its
 * stack, and the limit bounds the time for which a CPU's caches stay owned. */
#define TRANSFER_MAX OS_TRANSFER_MAX

/* Says whether a cache's next slab goes to a window. Under WINDOW_IF_WANTED it does once inlined
 * code has asked for an object, which sets WINDOW_WANTED. */
enum window_wish { WINDOW_NEVER, WINDOW_IF_WANTED, WINDOW_WANTED };

/* What a cache is. COLD: it has no body of its own (ADR 148). DESTROYED: the structure stays until
 * cache_forget(), for reports of late calls. */
enum cache_state { CACHE_WARM, CACHE_COLD, CACHE_DESTROYED };

/* A cold cache has only this structure, so it has what fast paths read, and what thousands of
 * caches need that are rarely used. All else is in the body. */
struct prudence_cache {
    /* Read by fast paths. Constant, except that extensions_add(), extensions_begin() and
     * destruction close `fast_percpu`. */
    /* Equal to `percpu`, or os_percpu_owned_lines to close the fast paths if extensions want the
     * objects, rseq is missing, or the objects are large blocks. */
    void *fast_percpu;
    const void *page_map; /* os_page_map_root(), for programs that inline fast paths */
    /* Base and extent of the window, and the grid of objects in a place of the window. Also read by
     * inlined code. */
    struct os_window_words window_words;
    uint64_t window_mask; /* mask that turns an address into an offset in the place */
    struct grid window_grid;
    uint32_t cpus; /* number of lines at `fast_percpu`, for inlined code; 0 without sequences */
    uint32_t extensions; /* one bit each (extension.h); atomic */

    /* All that calls of a cold cache (heap/cold.c) also need, in one cache line. Later they are
     * as constant as the rest. */
    /* The first CPU's cpu_cache; NULL for large blocks. While the cache is cold, any address that
     * is not NULL. */
    void *percpu; /* atomic while the cache may be cold */
    /* That of `common` while the cache is cold, so constants can be read at any time. Atomic:
     * written once more, when the cache becomes warm. */
    struct cache_body *body;
    /* The cache in whose slabs the objects are that were allocated while this cache was cold; NULL
     * if it never was. The counts, which are atomic, are of these objects. */
    struct prudence_cache *common;
    uint64_t cold_allocations, cold_frees, cold_deferred;
    struct prudence_domain *domain;
    uint32_t object_size;
    uint16_t slab_extensions; /* subset of `extensions` that slabs have as well; atomic */
    uint8_t state;            /* enum cache_state; atomic */
    bool named; /* callers name the cache when they free, so fast paths read its `fast_percpu` */

    struct list link;    /* in slab_caches or slab_cold_caches, under slab_caches_lock */
    uint64_t number;     /* unique among all caches ever made; grows along the list */
    uint32_t cold_round; /* of all cold caches, when this one was last read; atomic */
    uint16_t alignment;
    uint16_t flags; /* CACHE_FLAGS */
    char name[CACHE_NAME_SIZE];
    uintptr_t later[2]; /* the head of the callback that ends the cache (cache_later.c) */
};

/* The rest of a cache that is not cold, with the nodes behind it. */
struct cache_body {
    /* Constant, unless said otherwise. */
    /* `fast_percpu` of new slabs; open even if only allocations are closed. Atomic, like it. */
    void *slab_percpu;
    /* For allocations and deferrals of a cache with a destructor: the CPUs' lines, unless another
     * extension reads these; else closed. Atomic. */
    void *aside_percpu;
    struct slab_node *nodes;
    size_t stride;
    size_t slab_bytes;
    unsigned capacity; /* objects in a slab */
    unsigned colors;   /* different places of the first object, 64 bytes (or the alignment) apart */
    unsigned batch;    /* objects that share a cookie */
    /* Least number of objects, a power of two up to 8, that end where a cache line ends; 1 for
     * objects of a line or more. */
    unsigned line_objects;
    unsigned size_min, size_max; /* objects in an object cache */
    unsigned free_limit;         /* free slabs that a node keeps */
    /* Bytes of pages on each side of a large block that no thread may touch. */
    uint32_t margin;
    uint16_t redzone;    /* unused bytes after each object */
    uint8_t window_wish; /* enum window_wish; atomic */
    /* The creator fixed the size of the object caches; the budget does not limit it. */
    bool sized;
    /* As many CPUs have arrays as there are threads (abandoned.c). A hint, atomic. */
    bool crowded;
    void (*constructor)(void *object, void *context);
    void (*destructor)(void *object, void *context); /* called by an extension */
    void *context;
    struct os_window *window; /* atomic; stays once made */
    void *destructs, *shelf;  /* words of the extensions destruct and shuffle */

    /* Atomic; fields from here on change. */
    uint32_t next_color __attribute__((aligned(CACHE_LINE)));
    /* Threads that hold the cache without the list's lock (cache_hold); atomic. */
    uint32_t visitors;
    uint64_t slabs_now, slabs_peak; /* atomic, like the counters below */
    CACHE_COUNTERS(COUNTER_FIELD)
    uint64_t large_grown, large_shrunk; /* bytes that large blocks ever took, and returned */
    /* Hints of decay.c; atomic. Bytes of free slabs that it has taken and that were not
     * regretted, and how much it had taken of all caches then. */
    uint64_t early_taken, early_at;
    uint64_t grow_avoided_at;    /* ns; atomic */
    uint64_t quiet_checked_at;   /* ns; atomic */
    struct cpu_note *fork_notes; /* notes of the fork under way (fork.c); under slab_caches_lock */
};

#define SLAB_STRIDE_MIN 2 /* bytes; see grid_of */

#define CACHE_TYPESAFE      (1u << 0) /* PRUDENCE_CACHE_TYPESAFE */
#define CACHE_DESTRUCT_SOON (1u << 1) /* PRUDENCE_CACHE_DESTRUCT_SOON */
#define CACHE_CLOSED        (1u << 2) /* objects have no bytes, and no thread may touch the pages */
#define CACHE_DENSE         (1u << 3) /* slabs leave as little over as possible */
#define CACHE_OWN           (1u << 4) /* of the library, which stores addresses in its own forms */
#define CACHE_COMMON        (1u << 5) /* slabs note which cold cache has each object */
#define CACHE_ROOMY         (1u << 6) /* of at least ROOMY_BYTES_MIN, which leave little over */
#define CACHE_POLLS_OBJECTS (1u << 7) /* the domain reports single objects (gp_polls_objects) */
#define CACHE_CONSTRUCTED   (1u << 8) /* has a constructor */
#define CACHE_DESTRUCTED    (1u << 9) /* has a destructor: safe objects are reused (reuse.h) */

/* All flags. A flag that an embedder of the slab layer needs belongs here too. */
#define CACHE_FLAGS                                                                                \
    (CACHE_TYPESAFE ^ CACHE_DESTRUCT_SOON ^ CACHE_CLOSED ^ CACHE_DENSE ^ CACHE_OWN ^               \
     CACHE_COMMON ^ CACHE_ROOMY ^ CACHE_POLLS_OBJECTS ^ CACHE_CONSTRUCTED ^ CACHE_DESTRUCTED)

_Static_assert(CACHE_FLAGS == (1u << 10) - 1, "each flag has a bit of its own");
_Static_assert(FIELD_HOLDS(struct prudence_cache, flags, CACHE_FLAGS), "no flag is cut off");
_Static_assert(FIELD_HOLDS(struct prudence_cache, state, CACHE_DESTROYED), "nor a state");
_Static_assert(FIELD_HOLDS(struct prudence_cache, object_size, OBJECT_SIZE_MAX), "nor a size");
_Static_assert(FIELD_HOLDS(struct prudence_cache, alignment, OS_PAGE_SIZE), "nor an alignment");
_Static_assert(FIELD_HOLDS(struct prudence_cache, slab_extensions, (1u << OS_EXTENSIONS) - 1),
               "nor an extension");
_Static_assert(FIELD_HOLDS(struct cache_body, window_wish, WINDOW_WANTED), "nor a wish");

/* Returns the body of a cache that other threads may make warm at the same time. Acquire: pairs
 * with warm() in cache.c. */
static inline struct cache_body *cache_body_of(const struct prudence_cache *cache)
{
    return load_acquire(&cache->body);
}

/* Called by inlined code. Later slabs of the cache go to a window, if the cache may have one. */
static inline void cache_want_window(struct prudence_cache *cache)
{
    struct cache_body *body = cache_body_of(cache);

    if (load_relaxed(&body->window_wish) == WINDOW_IF_WANTED)
        store_relaxed(&body->window_wish, (uint8_t)WINDOW_WANTED);
}

/* Acquire: a cache that is seen not to be cold has a body and lines of its own. */
static inline bool cache_is_cold(const struct prudence_cache *cache)
{
    return load_acquire(&cache->state) == CACHE_COLD;
}

/* Returns whether only the structure and the body of the cache remain, until cache_forget(). */
static inline bool cache_is_destroyed(const struct prudence_cache *cache)
{
    return unlikely(load_relaxed(&cache->state) == CACHE_DESTROYED);
}

/* Returns the extensions. Acquire: pairs with warm() in cache.c, so a thread that finds none also
 * finds the body and the lines of a cache that was cold. */
static inline uint32_t cache_extensions(const struct prudence_cache *cache)
{
    return load_acquire(&cache->extensions);
}

/* Returns whether fast paths serve the objects of all slabs except those with an extension of their
 * own. */
static inline bool cache_is_plain(const struct prudence_cache *cache)
{
    return likely(os_percpu_rseq) && likely(!cache_extensions(cache)) &&
           likely(cache->percpu != NULL);
}

/* Returns the lines whose owner takes the place of the fast paths, except in slabs with an
 * extension of their own; NULL with sequences, or if an extension reads the cache's objects. */
static inline void *cache_owner_lines(const struct prudence_cache *cache)
{
    return unlikely(!os_percpu_rseq) && likely(!cache_extensions(cache)) ? cache->percpu : NULL;
}

/* Parameters of cache_create() (cache.h). */
struct cache_layout {
    size_t object_size, alignment;
    uint16_t flags; /* CACHE_FLAGS, except those that cache_create() sets */
    void (*constructor)(void *object, void *context);
    void (*destructor)(void *object, void *context);
    void *context;
    struct prudence_domain *domain;
    size_t object_cache_bytes;
    struct prudence_cache *common; /* the new cache is cold, with objects in this one's slabs */
    /* Memory for the structure, which is 0; NULL: metadata. Given with `common` only. */
    struct prudence_cache *structure;
    bool no_cpu_caches; /* large blocks, each in a slab alone */
    bool named;
};

#endif /* SLAB_CACHE_TYPE_H */
