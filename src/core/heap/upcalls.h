/* SPDX-License-Identifier: MIT */
/*
 * The few functions by which the heap calls parts above it, in addition to the extensions of the
 * slab layer. The embedding program's table names them (whole/parts.c). In a program without such
 * a part its functions do nothing.
 *
 * No lock is held, unless a function says otherwise.
 */
#ifndef HEAP_UPCALLS_H
#define HEAP_UPCALLS_H

#include "slab/slab.h"

struct wait_request;

struct heap_upcalls {
    /* The set of extensions that know the objects of common slabs as well, so that a cache which
     * has one may be cold (cold.c). */
    uint32_t of_cold;

    /* Gives up freed objects of all caches that are kept to find mistakes; or NULL. */
    void (*flush)(void);

    /* --- caches with a destructor; all or none of them --- */

    /* Returns 0 if this thread may wait for destructors, or else the error for the program, which
     * is reported. */
    int (*may_wait)(const struct wait_request *request);

    /* Waits until the destructors of all objects deferred before have returned. Returns false at
     * the deadline (0: none). */
    bool (*barrier)(struct prudence_cache *cache, uint64_t deadline);

    /* The same before the cache is destroyed, also for objects that destructors defer. */
    void (*empty)(struct prudence_cache *cache);

    /* --- domains whose readers name objects (CACHE_POLLS_OBJECTS); both or none --- */

    /* Returns whether a hazard pointer of this thread, but no movable one, names a deferred object
     * of the cache. */
    bool (*named_by_this_thread)(struct prudence_cache *cache);

    /* Waits until each object of the cache that was deferred before is safe. Returns false at the
     * deadline (0: none). */
    bool (*wait_for_names)(struct prudence_cache *cache, uint64_t deadline);

    /* --- mistakes of the program; each may be NULL --- */

    /* `object` is no object of the library. Reports one that was, and ends the process. */
    void (*unknown)(const void *object, const char *what);

    /* A block begins or ends to change its size. Reports a free of the block in between. */
    void (*resizes)(struct slab *slab, bool begins);

    /* Returns the number of the trace of calls that led here, or 0 if it is unknown or the cache's
     * objects are not traced. `cache` may be NULL. */
    uint32_t (*trace)(const struct prudence_cache *cache);

    /* Prints a trace under a title. */
    void (*print_trace)(const char *title, uint32_t trace);

    /* Prints which calls allocated the live objects of a cache that cannot be destroyed, if that is
     * known. */
    void (*explain_live)(const struct prudence_cache *cache);
};
extern const struct heap_upcalls heap_upcalls;

#endif /* HEAP_UPCALLS_H */
