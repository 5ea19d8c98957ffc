/* SPDX-License-Identifier: MIT */
/*
 * A memory model: what ACDC calls when it wants an object, and when it needs one no longer. A back-end
 * is one file that fills in this table; what a model does not have is NULL.
 *
 * Explicit models free (or defer) an object when its lifetime has ended. A model that expires objects
 * is told at each tick which ones are still needed, and for how long.
 */
#ifndef ACDC_MODEL_H
#define ACDC_MODEL_H

#include "settings.h"

#define HELD_UNKNOWN UINT64_MAX

struct model {
    const char *description; /* for people: what allocates, and what takes back */
    /* Before the first thread. False: `why` says what is missing. */
    bool (*start)(const struct settings *settings, char *why, size_t size);
    bool (*thread_start)(const struct settings *settings, unsigned thread); /* false: no memory */
    void (*thread_stop)(void);
    void (*pause)(void); /* the thread is done, and waits for the others */
    void (*resume)(void);

    void *(*allocate)(size_t size);
    void (*free)(void *object);
    void (*defer)(void *object);
    void (*read_lock)(void); /* around accesses */
    void (*read_unlock)(void);

    bool expires;
    /* The object is needed for `extension` more ticks than the next one. False: no memory. */
    bool (*refresh)(void *object, unsigned extension);
    bool (*global_refresh)(void *object, unsigned extension);
    void (*tick)(void);
    void (*global_tick)(void);
    void (*collect)(void); /* all that has expired, when the run is over */

    void (*quiesce)(
        void); /* by one thread, at the end: waits until all that was deferred is free */
    /* Bytes that wait to be free, or expire, beside the live ones; NULL: none ever do. */
    uint64_t (*held)(uint64_t live_bytes);
};

extern const struct model model_persistent, model_none, model_deferred_prudence, model_short_term;
#if ACDC_LIBURCU
extern const struct model model_deferred_liburcu;
#endif

/* The back-end of these settings; NULL: this program was built without it, and `why` says so. */
const struct model *model_find(const struct settings *settings, char *why, size_t size);

#endif /* ACDC_MODEL_H */
