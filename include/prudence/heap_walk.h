/* SPDX-License-Identifier: MIT */
/*
 * A walk over the heap: every slab, every object in it and the object's state, while the program
 * runs.
 *
 *     static int visit(const struct prudence_heap_slab *slab,
 *                      const struct prudence_heap_object *object, void *context)
 *     {
 *         if (object && object->state == PRUDENCE_OBJECT_LIVE)
 *             ...
 *         return 0;
 *     }
 *     prudence_heap_walk(NULL, visit, NULL);
 *
 * Latent objects are defined in Prudent Memory Reclamation (ASPLOS 2016), sections 4.1 and 4.2.
 */
#ifndef PRUDENCE_HEAP_WALK_H
#define PRUDENCE_HEAP_WALK_H

#include <prudence/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

/* States of an object. */
enum prudence_object_state {
    PRUDENCE_OBJECT_LIVE,   /* allocated, and neither freed nor deferred; or its destructor runs */
    PRUDENCE_OBJECT_CACHED, /* free, in a CPU's object cache */
    PRUDENCE_OBJECT_LATENT, /* deferred, and not used again yet */
    PRUDENCE_OBJECT_FREE,   /* free, in its slab */
    /* Freed or safe, and kept back by quarantine or shuffle, or for the destructor. */
    PRUDENCE_OBJECT_RESTING,
};

/* Reasons why a latent object waits; PRUDENCE_WAIT_NONE for other objects. */
enum prudence_object_wait {
    PRUDENCE_WAIT_NONE,
    /*
     * No cookie yet, because the batch is still open, or the slab's previous grace period is not
     * over.
     */
    PRUDENCE_WAIT_BATCH,
    PRUDENCE_WAIT_GRACE_PERIOD, /* the cookie's grace period is not over */
    /*
     * The grace period is over. The next allocation or visit that finds the object makes it free.
     */
    PRUDENCE_WAIT_MERGE,
};

/*
 * A slab, as it was at one instant of the walk. Figures count objects, unless the comment says
 * bytes.
 */
struct prudence_heap_slab {
    const struct prudence_cache *cache; /* to compare with; may have been destroyed since */
    char cache_name[32];
    char domain[32];
    const void *pages;
    uint64_t bytes;         /* bytes of pages, including guard pages of a large block */
    uint64_t object_size;   /* bytes that the user of an object may use */
    uint64_t object_stride; /* bytes from one object to the next */
    uint64_t node;          /* NUMA node that memory was requested from */
    /* 1: one object in a slab of its own (a large block, guarded, or sampled). */
    uint64_t is_large;
    uint64_t objects; /* = live + cached + latent + free + resting */
    uint64_t live, cached, latent, free, resting;
};

/* An object of the slab, at the same instant. */
struct prudence_heap_object {
    const void *address;
    uint64_t size;  /* bytes that the user may use */
    uint32_t state; /* enum prudence_object_state */
    uint32_t wait;  /* enum prudence_object_wait */
    /*
     * The cookie, with PRUDENCE_WAIT_GRACE_PERIOD and _MERGE. All objects of a domain share one
     * sequence.
     */
    uint64_t cookie;
    int32_t cpu; /* CPU whose object or latent cache has it; -1: none */
    uint32_t reserved;
};

/*
 * Visits each slab with `object` NULL, and then each object of the slab, in the order of addresses.
 * The walk goes on if this returns 0. PRUDENCE_HEAP_SKIP, returned for a slab, skips the objects.
 * Everything else ends the walk, which returns it. The structures are valid during the call.
 *
 * The library holds nothing, so this may call all functions of the library, including these, take
 * locks, wait and fork. The remaining visits of the same slab do not show changes that this makes.
 * The function must return: a jump, an exception or a cancellation loses 540 KB.
 */
typedef int prudence_heap_visitor(const struct prudence_heap_slab *slab,
                                  const struct prudence_heap_object *object, void *context);
#define PRUDENCE_HEAP_SKIP (-1)

/*
 * Visits every slab of a cache (NULL: of all caches, including those of malloc and of the library
 * itself).
 *
 * Guarantees, whatever other threads do at the same time:
 *  - A slab that exists during the whole walk is visited once, and so is each object there. Slabs
 *    come in the order of addresses. A slab that comes or goes during the walk may be visited. A
 *    large block that realloc changes may be missed, or visited twice.
 *  - Each slab is shown in the state of one instant, and each object in its state at that instant.
 *    So a live object is never shown as another one, nor another one as live. An object that a
 *    thread is freeing, deferring or allocating is shown as before or after that. Different slabs
 *    are shown at different instants.
 *  - In caches made with quarantine, shuffle, check or a destructor, each object is shown in the
 *    state of a separate instant.
 *
 * Without other threads the numbers agree with prudence_cache_stats. Live and resting objects are
 * objects_live there, cached and latent ones objects_cached + objects_latent.
 *
 * Objects of caches that share slabs (one of hundreds of caches, until it is used) are shown at the
 * shared cache, named `common-SIZE`. A walk over such a cache alone shows the shared slabs, but in
 * them only the cache's own live objects.
 *
 * The walk does not show the library's own metadata, nor memory inside a large block, such as the
 * objects of a region of short-term memory.
 *
 * The world is not stopped. For each 64 slabs or 32,768 objects the walk closes the object and
 * latent caches of the caches that they belong to, for ten microseconds to half a millisecond.
 * Threads that use one of these take the slow path in that time. Threads that would move objects
 * between a CPU's caches and a node, in any cache, wait that long, as they do for a fork. The walk
 * waits for no grace period and runs no destructor.
 *
 * The walk takes 540 KB while it runs, whatever the heap's size. Thread-safe; several walks take
 * turns. May be called inside read-side sections, in callbacks and destructors, and in a forked
 * child. Takes locks, so not for signal handlers. Returns 0 at the end, or
 *     EINVAL   visit is NULL, or a size is more than 512
 *     ENOMEM   there is no memory for the walk
 *     EBUSY    in an atfork handler: fork holds the caches
 *     EDEADLK  in a signal handler that has interrupted this thread inside the library
 * or the number that the visitor returned. The structures grow like those of <prudence/stats.h>.
 * The visitor gets as much of them as the program was compiled with.
 */
PRUDENCE_API int prudence_heap_walk_sized(struct prudence_cache *cache,
                                          prudence_heap_visitor *visit, void *context,
                                          size_t slab_size, size_t object_size);

static inline int prudence_heap_walk(struct prudence_cache *cache, prudence_heap_visitor *visit,
                                     void *context)
{
    return prudence_heap_walk_sized(cache, visit, context, sizeof(struct prudence_heap_slab),
                                    sizeof(struct prudence_heap_object));
}

/*
 * Prints all slabs of a cache (NULL: of all caches) by such a walk to `file`. As text prints a line
 * for each slab. As JSON prints one array of objects, each with the member "states". This has the
 * states of the slab's objects in the order of their addresses, each with the length of the run: L
 * live, C cached, D latent, F free, R resting ("3L12D81F"; "" if the slab has none of the cache's
 * objects). Returns the value of prudence_heap_walk, EINVAL for a bad argument, or the error number
 * of the stream.
 */
PRUDENCE_API int prudence_heap_print(struct prudence_cache *cache, FILE *file,
                                     enum prudence_stats_format format);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_HEAP_WALK_H */
