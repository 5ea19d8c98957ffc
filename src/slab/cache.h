/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A slab cache: all objects of one size. Its structures, from the CPU down to the page:
 *
 *   prudence_cache  its CPUs' caches and its nodes
 *   cpu_cache       one CPU's object cache (stack) and latent cache (ring of closed batches and an
 *                   open one): cpu_cache.h
 *   batch           objects deferred together, under one cookie: cpu_cache.h
 *   node            one NUMA node's lists of slabs, and their lock: node.h
 *   slab            a run of pages cut into equal objects, and its latent slab (two bitmaps): slab.h
 *   transfer batch         latent objects on their way from the idle helper to a node: transfer_batch.h
 *
 * Functions of NAME.c are declared in NAME.h; those of alloc.c, free.c and defer.c in slow_path.h, those of fork.c in
 * start.h. Which file may use which: docs/explanation/design.md.
 *
 * Where an object can be: live (with the caller), on a stack, in a ring, in a transfer batch, or in its
 * slab: free, waiting or next. Exactly one of them at any time. To its slab an object is
 * "allocated" unless its free bit is set; "latent" when it is waiting or next.
 */
#ifndef SLAB_CACHE_H
#define SLAB_CACHE_H

#include "base/grid.h"
#include "base/list.h"
#include "os/os.h"

#define CACHE_NAME_SIZE 32
#define OBJECT_SIZE_MAX ((size_t)32768)

/* At most this many objects move between a CPU's caches and a node at a time: what is copied on
 * the mover's stack, and what bounds the time that a CPU's caches stay owned. */
#define TRANSFER_MAX OS_TRANSFER_MAX

/* Whether a cache's next slab is to be in a window: no (or not any more); if inlined code asks for an object; or yes,
 * since it has asked. */
enum window_wish { WINDOW_NEVER, WINDOW_IF_WANTED, WINDOW_WANTED };

struct prudence_cache {
    /* What fast paths look at; constant, but that `fast_percpu` may be closed (slab_extend). */
    void *
        fast_percpu; /* = lines, or os_percpu_owned_lines (extensions for its objects, no rseq, large blocks) */
    const void *page_map; /* os_page_map_root(), which programs that inline fast paths find here */
    /* For objects in its window: base and extent, and where they begin in a place. Inlined code looks here, too. */
    struct os_window_words window_words;
    uint64_t window_mask; /* of an address: where it is in its place */
    struct grid window_grid;
    uint32_t cpus;       /* lines behind `fast_percpu`, for inlined code */
    uint32_t extensions; /* a bit each (extension.h) */
    void *percpu;        /* the first CPU's cpu_cache; NULL: large blocks, which have none */
    void *slab_percpu;   /* a new slab's `fast_percpu`: open also if only allocations are closed */
    struct prudence_domain *domain;

    size_t object_size, stride, alignment;
    size_t slab_bytes;
    unsigned capacity; /* objects of a slab */
    unsigned colors;   /* different places of the first object, 64 bytes (or alignment) apart */
    unsigned batch;    /* objects that share a cookie */
    unsigned size_min, size_max; /* of an object cache */
    unsigned free_limit;         /* free slabs that a node keeps */
    unsigned flags;
    uint32_t slab_extensions; /* of these, those that its slabs have (only_instead) */
    uint32_t
        margin; /* of large blocks: bytes of pages before and behind each that may not be touched */
    uint16_t redzone; /* spare bytes behind each object */
    bool named;       /* its users name it when they free, so its own `fast_percpu` are looked at */
    uint8_t window_wish; /* enum window_wish; atomic */
    bool sized; /* its creator said what its object caches may hold: they do, whatever the budget */
    void (*constructor)(void *object, void *context);
    void (*destructor)(void *object, void *context); /* an extension's */
    void *context;
    struct slab_node *nodes;
    struct os_window *window;  /* atomic; once made it stays */
    struct list link;          /* in slab_caches; its lock */
    uint64_t number;           /* unique among all caches ever made; grows along the list */
    void *side[OS_EXTENSIONS]; /* a word for each extension */

    uint32_t next_color __attribute__((aligned(CACHE_LINE))); /* atomic; what changes begins here */
    uint32_t visitors; /* threads that hold it without the list's lock (cache_hold); atomic */
    uint64_t slabs_now, slabs_peak; /* atomic, as the next */
    uint64_t bypasses, preflushed, pressure_waits, remote_drains;
    uint64_t large_grown, large_shrunk; /* bytes that large blocks ever took, and gave back */
    uint64_t grow_avoided_at;           /* ns; atomic */
    uint64_t quiet_checked_at;          /* ns; atomic */
    struct cpu_note *fork_notes; /* of the fork that is under way (fork.c); slab_caches_lock */
    char name[CACHE_NAME_SIZE];
};

#define CACHE_TYPESAFE (1u << 0) /* PRUDENCE_CACHE_TYPESAFE */
#define CACHE_CLOSED   (1u << 2) /* its objects have no bytes, and its pages may not be touched */
#define CACHE_DENSE    (1u << 3) /* its slabs leave little over, and give up no object for colors */
#define CACHE_OWN                                                                                  \
    (1u << 4) /* of the library's own objects, whose addresses it stores in forms of its own */
#define CACHE_DESTRUCT_SOON                                                                        \
    (1u << 1) /* PRUDENCE_CACHE_DESTRUCT_SOON: safe objects go to their slabs */

/* By inlined code: its next slabs go to a window, if it may have one. */
static inline void cache_want_window(struct prudence_cache *cache)
{
    if (load_relaxed(&cache->window_wish) == WINDOW_IF_WANTED)
        store_relaxed(&cache->window_wish, (uint8_t)WINDOW_WANTED);
}

/* Of a destroyed cache only this structure is left, until cache_forget(). */
static inline bool cache_is_destroyed(const struct prudence_cache *cache)
{
    return !load_relaxed(&cache->nodes);
}

/* Whether fast paths would serve the objects of all its slabs, except slabs with an extension of their own. */
static inline bool cache_is_plain(const struct prudence_cache *cache)
{
    return likely(os_percpu_rseq) && likely(!cache->extensions) && likely(cache->percpu != NULL);
}

/* ------------------------------------------------------------------------------------- its life: cache.c */

/* What is asked for. */
struct cache_layout {
    size_t object_size, alignment;
    unsigned flags;
    void (*constructor)(void *object, void *context);
    void (*destructor)(void *object, void *context);
    void *context;
    struct prudence_domain *domain;
    size_t object_cache_bytes;
    bool no_cpu_caches; /* large blocks: every block is a slab of its own */
    bool named;
};
struct prudence_cache *cache_create(const char *name, const struct cache_layout *layout);
bool cache_destroy(struct prudence_cache *cache, size_t *live);
void cache_forget(struct prudence_cache *cache);
/* Of caches that are made from now on. */
extern size_t slab_redzone, slab_margin;

#endif /* SLAB_CACHE_H */
