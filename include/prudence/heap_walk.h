/* SPDX-License-Identifier: MIT */
/*
 * A walk over the heap: every slab, every object in it and its state, while the program runs.
 *
 *     static int visit(const struct prudence_heap_slab *slab, const struct prudence_heap_object *object, void *context)
 *     {
 *         if (object && object->state == PRUDENCE_OBJECT_LIVE)
 *             ...
 *         return 0;
 *     }
 *     prudence_heap_walk(NULL, visit, NULL);
 *
 * Latent objects are those of Prudent Memory Reclamation (ASPLOS 2016), sections 4.1 and 4.2.
 */
#ifndef PRUDENCE_HEAP_WALK_H
#define PRUDENCE_HEAP_WALK_H

#include <prudence/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where an object is. */
enum prudence_object_state {
    PRUDENCE_OBJECT_LIVE, /* the program's: allocated, and neither freed nor deferred; also while its destructor runs */
    PRUDENCE_OBJECT_CACHED, /* free, in a CPU's object cache */
    PRUDENCE_OBJECT_LATENT, /* deferred, and not used again yet */
    PRUDENCE_OBJECT_FREE,   /* free, in its slab */
    PRUDENCE_OBJECT_RESTING, /* freed or safe, and kept back: by quarantine or shuffle, or for its destructor */
};

/* What a latent object waits for; of other objects PRUDENCE_WAIT_NONE. */
enum prudence_object_wait {
    PRUDENCE_WAIT_NONE,
    PRUDENCE_WAIT_BATCH, /* its batch is still open, or its slab's grace period before it: it has no cookie yet */
    PRUDENCE_WAIT_GRACE_PERIOD, /* the grace period of its cookie is not over */
    PRUDENCE_WAIT_MERGE, /* it is over: the next allocation or visit that finds the object makes it free */
};

/* A slab, as it was at one instant of the walk. Numbers of objects, unless it says bytes. */
struct prudence_heap_slab {
    const struct prudence_cache *cache; /* to compare with; it may have been destroyed since */
    char cache_name[32];
    char domain[32];
    const void *pages;
    uint64_t bytes; /* of its pages; those of a large block that may not be touched count too */
    uint64_t object_size;   /* bytes that the user of an object may use */
    uint64_t object_stride; /* bytes from one object to the next */
    uint64_t node;          /* whose memory was asked for */
    uint64_t
        is_large; /* 1: one object, in a slab of its own: more than 32 KiB, guarded, or sampled */
    uint64_t objects; /* = live + cached + latent + free + resting */
    uint64_t live, cached, latent, free, resting;
};

/* One of its objects, at the same instant. */
struct prudence_heap_object {
    const void *address;
    uint64_t size;  /* bytes that its user may use */
    uint32_t state; /* enum prudence_object_state */
    uint32_t wait;  /* enum prudence_object_wait */
    uint64_t
        cookie; /* with PRUDENCE_WAIT_GRACE_PERIOD and _MERGE: in the domain's sequence, as the cookies of its other objects */
    int32_t cpu; /* whose object or latent cache it is in; -1: in none */
    uint32_t reserved;
};

/*
 * Called for each slab with `object` NULL, and then for each object of the slab, in the order of their addresses. 0: the walk
 * goes on. PRUDENCE_HEAP_SKIP, for a slab: without its objects. Everything else ends the walk, which returns it. The structures are
 * valid during the call.
 *
 * Nothing of the library is held, so it may call all functions of the library, these included, take locks, wait and fork. What it
 * changes, the rest of its own slab's visits do not show. It returns: a jump, an exception or a cancellation out of it loses 300
 * KB.
 */
typedef int prudence_heap_visitor(const struct prudence_heap_slab *slab,
                                  const struct prudence_heap_object *object, void *context);
#define PRUDENCE_HEAP_SKIP (-1)

/*
 * Visits every slab of a cache (NULL: of all caches, those of malloc and of the library itself included).
 *
 * Promised, whatever other threads do meanwhile:
 *   - a slab that is there during the whole walk is visited once, and so is each of its objects; slabs in the order of their
 *     addresses. A slab that comes or goes meanwhile may be visited, and a large block that realloc changes may be missed, or be
 *     visited twice;
 *   - each slab is shown as it was at one instant: every object in the one state that it had then. So a live object is never
 *     shown as another one, nor another one as live. An object that a thread is just freeing, deferring or allocating is shown as
 *     before or after that. Different slabs are shown at different instants;
 *   - of caches made with quarantine, shuffle, check or a destructor, each object is shown as it was at an instant of its own.
 * Without other threads the numbers are those of prudence_cache_stats: live and resting objects are its objects_live, cached and
 * latent ones are its objects_cached + objects_latent.
 *
 * Not shown: the library's own metadata; memory inside of a large block, such as the objects of a region of short-term memory.
 *
 * The world is not stopped. For each 64 slabs or 16,384 objects the walk closes the object and latent caches of the caches that
 * they belong to for ten to a hundred microseconds: threads that use one of these go the slow way then. Threads that would move objects
 * between a CPU's caches and a node, in any cache, wait for so long, as they do for a fork. It waits for no grace period and runs no destructor.
 *
 * Takes 300 KB while it runs, whatever there is. Thread-safe; any number of walks, one after the other in turns. May be called inside
 * read-side sections, in callbacks and destructors, and in a forked child. Takes locks, so not in signal handlers. Returns 0 at the
 * end, or
 *   EINVAL   visit is NULL, or a size is more than 512
 *   ENOMEM   there is no memory for the walk
 *   EBUSY    in an atfork handler: fork holds the caches
 *   EDEADLK  in a signal handler that has interrupted this thread inside the library
 * or what the visitor returned. The structures grow as those of <prudence/stats.h>: the visitor is given as much of them as the
 * program was compiled with.
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
 * Prints all slabs of a cache (NULL: of all caches) by such a walk, to `file`. As text a line a slab; as JSON one array of objects,
 * each with the member "states": the states of its objects in the order of their addresses, each with how many have it in a row: L live, C cached, D
 * latent, F free, R resting ("3L12D81F"). Returns what prudence_heap_walk returns, EINVAL for a bad argument, or the error number of the stream.
 */
PRUDENCE_API int prudence_heap_print(struct prudence_cache *cache, FILE *file,
                                     enum prudence_stats_format format);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_HEAP_WALK_H */
