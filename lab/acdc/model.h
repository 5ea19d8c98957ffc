/* SPDX-License-Identifier: MIT */
/*
 * A memory model: ACDC's calls to get objects, and to give up those that it no longer needs. A
 * back-end is one file that fills in this table, with NULL for functions that a model lacks.
 *
 * Explicit models free (or defer) an object when its lifetime has ended. A model that expires
 * objects learns at each tick which ones are still needed, and for how long.
 */
#ifndef ACDC_MODEL_H
#define ACDC_MODEL_H

#include "settings.h"

#define HELD_UNKNOWN UINT64_MAX

struct model {
    const char *description; /* for people: names the allocator and the reclaimer */
    /* Called before the first thread. Returns false if something is missing, named in `why`. */
    bool (*start)(const struct settings *settings, char *why, size_t size);
    /* false if there is no memory */
    bool (*thread_start)(const struct settings *settings, unsigned thread);
    void (*thread_stop)(void);
    void (*pause)(void); /* the thread is done, and waits for the others */
    void (*resume)(void);

    void *(*allocate)(size_t size);
    void (*free)(void *object);
    void (*defer)(void *object);
    void (*read_lock)(void); /* around accesses */
    void (*read_unlock)(void);

    bool expires;
    /* The object is needed for `extension` more ticks than the next one. Returns false if there
     * is no memory. */
    bool (*refresh)(void *object, unsigned extension);
    bool (*global_refresh)(void *object, unsigned extension);
    void (*tick)(void);
    void (*global_tick)(void);
    void (*collect)(void); /* frees all expired objects at the end of the run */

    void (*quiesce)(
        void); /* called by one thread at the end: waits until all deferred objects are free */
    /* Returns live bytes plus those that wait to be free, or expire; NULL if none ever do. */
    uint64_t (*held)(uint64_t live_bytes);
};

extern const struct model model_persistent, model_none, model_deferred_prudence, model_short_term;
#if ACDC_LIBURCU
extern const struct model model_deferred_liburcu;
#endif

/* Returns the back-end for these settings; NULL, with a reason in `why`, if this program was
 * built without it. */
const struct model *model_find(const struct settings *settings, char *why, size_t size);

#endif /* ACDC_MODEL_H */
