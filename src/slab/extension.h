/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Extensions: what a process wants done to objects beyond the paper, such as checks, destructors and expiration dates.
 *
 * A cache has the extensions that want it when it is made. Its slabs have the same, except those that look at allocations
 * only (only_instead), and a slab may get one more later (slab_extend). Fast paths of what has an extension that does
 * something in an object's life are closed, so its objects come to the gate (gate.c). There the extensions are called at
 * each step, from the first to the last of the table:
 *
 *   allocate   instead; or an object of the cache: taken; then allocated
 *   free       freed, released, keeps
 *   defer      deferred; it waits for its grace period; after_deferral
 *   safe       safe; released, unless one of them said that it will see to that
 *
 * Locks: `may_go` and `safe` may be called under a node's lock, and `safe` by the owner of a CPU's caches: these take
 * no lock, make no system call and do not wait. All others are called with no lock of the slab layer held, but
 * perhaps with locks of the caller's. `going` and `keeps_pages` are called by a thread that carries the slab.
 */
#ifndef SLAB_EXTENSION_H
#define SLAB_EXTENSION_H

#include "os/os.h"

struct slab;
struct prudence_cache;
struct cache_layout;

/* Functions may be NULL: nothing is to be done at that step. */
struct slab_extension {
    /* --- a cache's life --- */
    bool (*wants)(const struct cache_layout *layout); /* NULL: no cache, from its beginning */
    /* Of a cache that it wants: only `instead` is called, and of the cache's slabs it has only those of lone objects
     * that it made. Frees and deferrals keep their fast paths. */
    bool (*only_instead)(const struct cache_layout *layout);
    bool (*cache_made)(struct prudence_cache *cache); /* false: no memory */
    void (*cache_going)(struct prudence_cache *cache);

    /* --- a slab's life --- */
    bool (*made)(struct slab *slab);  /* before any object is handed out; false: no memory */
    void (*ready)(struct slab *slab); /* constructed; not of large blocks and lone objects */
    void (*going)(struct slab *slab); /* before its pages go; those of a lone object go here */
    /* Behind `going`, with the slab's pages not to be found any more: true: the extension gives them back later, and has the
     * slab's own memory for its notes until it calls slab_forget_memory(). Changes no mapping, as `going`. */
    bool (*keeps_pages)(struct slab *slab);
    /* A live large block changes its size: it is to have no margins any more. False: it keeps them, and its place and size. */
    bool (*drop_margins)(struct slab *slab);
    bool (*may_go)(struct slab *slab); /* it is free; false: its pages are still needed */
    void (*kept)(void);                /* behind the lock: some slab might not go */

    /* --- an object's life --- */
    /* An object of its own, alone in its slab, in place of one of the cache; NULL: none. */
    void *(*instead)(struct prudence_cache *cache, size_t size);
    /* `object` was taken from the cache. Returns it or another one; NULL: there is no memory for another. */
    void *(*taken)(struct prudence_cache *cache, void *object);
    /* Handed out next. `size`: what was asked for; `zeroed`: known to be. */
    void (*allocated)(struct slab *slab, void *object, size_t size, bool zeroed);
    /* A live object keeps its place, and may have `size` bytes from now on. */
    void (*resized)(struct slab *slab, void *object, size_t size);
    void (*freed)(struct slab *slab, void *object, const char *what);
    void (*deferred)(struct slab *slab, void *object, const char *what);
    void (*after_deferral)(struct prudence_cache *cache, bool alone); /* its slab may be gone */
    /* Its grace period is over. False: the extension calls extensions_released() later. */
    bool (*safe)(struct slab *slab, void *object);
    void (*released)(struct slab *slab, void *object); /* no reader looks at it any more */
    /* True: the extension has taken it over, and calls cache_put_kept() later. */
    bool (*keeps)(struct slab *slab, void *object);

    /* --- questions about an object --- */
    /* Whether only the extension frees it, whatever its user does. */
    bool (*owns)(struct slab *slab, const void *object);
    size_t (*size_asked)(const struct slab *slab, const void *object); /* 0: it does not know */
    void (*check_live)(const struct slab *slab, const void *object, const char *what);

    /* --- the process --- */
    /* Behind the first line of a report: what else is known of the pointer; `slab` may be NULL. */
    void (*explain)(const struct slab *slab, const void *pointer);
    void (*pressure)(void); /* memory is wanted: what is kept is to go now. No lock is held */
};

/* Defined by the program that embeds the slab layer; its indices are the numbers of extensions. Entries may be NULL. */
extern const struct slab_extension *const slab_extensions[OS_EXTENSIONS];

#define EXTENSION_BIT(number) (UINT32_C(1) << (number))

/* The first large blocks of a process get an extension that their caches do not have (debug/large_guard.c). */
struct first_blocks {
    uint32_t extension; /* its bit; set as the process starts */
    int32_t margins;    /* so many blocks that are made next have margins; atomic */
    bool kept; /* blocks that are freed next: the extension is asked to keep their pages; atomic */
};
extern struct first_blocks slab_first;

/* Before the first cache is made. */
void extensions_start(void);

/* Whether some of a set have something to do in an object's life: then its fast paths are closed. */
bool extensions_meet_objects(uint32_t extensions);

/* A set of extensions, bit by bit. */
uint32_t extensions_wanted(const struct cache_layout *layout);
uint32_t extensions_of_slabs(uint32_t wanted, const struct cache_layout *layout);
bool extensions_cache_made(struct prudence_cache *cache);
void extensions_cache_going(struct prudence_cache *cache);
bool extensions_made(struct slab *slab);
void extensions_ready(struct slab *slab);
void extensions_going(struct slab *slab);
bool extensions_keep_pages(struct slab *slab);
bool extensions_drop_margins(struct slab *slab);
bool extensions_let_go(struct slab *slab);
void extensions_kept(void);
void *extensions_instead(struct prudence_cache *cache, size_t size);
void *extensions_taken(struct prudence_cache *cache, void *object);
void extensions_allocated(struct slab *slab, void *object, size_t size, bool zeroed);
void extensions_resized(struct slab *slab, void *object, size_t size);
void extensions_freed(struct slab *slab, void *object, const char *what);
void extensions_deferred(struct slab *slab, void *object, const char *what);
void extensions_after_deferral(struct prudence_cache *cache, uint32_t extensions, bool alone);
void extensions_safe(struct slab *slab, void *object);
void extensions_released(struct slab *slab, void *object);
bool extensions_keep(struct slab *slab, void *object);
bool extensions_own(struct slab *slab, const void *object);
size_t extensions_size_asked(const struct slab *slab, const void *object);
void extensions_check_live(const struct slab *slab, const void *object, const char *what);
void extensions_explain(const struct slab *slab, const void *pointer);
void extensions_pressure(void);

/* Gives a slab an extension that its cache does not have. The slab's fast paths, and those of a cache whose users
 * name it, are closed before the extension can be seen. Any thread, any time. */
void slab_extend(struct slab *slab, unsigned number);

#endif /* SLAB_EXTENSION_H */
