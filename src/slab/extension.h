/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Extensions add steps to the life of objects that the paper does not have, such as checks,
 * destructors and expiration dates.
 *
 * When a cache is made, it gets the extensions that want it. Slabs of the cache get the same ones,
 * except those that look at allocations only (only_instead); slab_extend() adds one more to a slab
 * later. If a cache or slab has an extension that acts on objects, fast paths are closed, so that
 * the objects come to the gate (gate.c). The gate calls the extensions to allocate, free and defer,
 * and merges call them for safe objects, from the first to the last of the table:
 *
 *   allocate   instead; or, for an object of the cache, taken, then allocated
 *   free       freed, released, keeps
 *   defer      deferred; the object waits for a grace period; after_deferral
 *   safe       safe; released, unless one of them takes care of that later
 *
 * Locks: `may_go` and `safe` may run under a node's lock, and `safe` as the owner of a CPU's
 * caches, so these two take no lock, make no system call and do not wait. `going`, `keeps_pages`
 * and `kept` may run under slab_caches_lock, and `explain` under any lock. All others run without a
 * lock of the slab layer. The program may hold locks in any case. A thread that carries the slab
 * calls `going` and `keeps_pages`.
 */
#ifndef SLAB_EXTENSION_H
#define SLAB_EXTENSION_H

#include "os/os.h"

struct slab;
struct prudence_cache;
struct cache_layout;

/* Functions of an extension. A NULL function does nothing at that step. */
struct slab_extension {
    /* --- life of a cache --- */
    bool (*wants)(const struct cache_layout *layout); /* NULL wants no cache at the start */
    /* Called for a wanted cache. If true, only `instead` is called, and the extension belongs only
     * to slabs of lone objects that it made. Frees and deferrals keep their fast paths. */
    bool (*only_instead)(const struct cache_layout *layout);
    bool (*cache_made)(struct prudence_cache *cache); /* false: no memory */
    void (*cache_going)(struct prudence_cache *cache);

    /* --- life of a slab --- */
    bool (*made)(struct slab *slab); /* before any object is handed out; false: no memory */
    /* After construction; not for large blocks and lone objects. */
    void (*ready)(struct slab *slab);
    void (*going)(struct slab *slab); /* before the pages go; frees the pages of a lone object */
    /* Called after `going`, when lookups no longer find the slab's pages. If true, the extension
     * frees the pages later, and has the slab's own memory for notes until
     * slab_forget_memory(). Changes no mapping, like `going`. */
    bool (*keeps_pages)(struct slab *slab);
    /* Removes the margins of a live large block before a resize. If false, the block keeps margins,
     * place and size. */
    bool (*drop_margins)(struct slab *slab);
    /* The slab is free; false: the extension still needs the pages. */
    bool (*may_go)(struct slab *slab);
    void (*kept)(void); /* called after the lock is released if may_go refused a slab */

    /* --- life of an object --- */
    /* Makes an object that is alone in a slab, in place of one from the cache. May return NULL. */
    void *(*instead)(struct prudence_cache *cache, size_t size);
    /* Returns `object`, taken from the cache, or another one. Returns NULL if there is no memory
     * for another. */
    void *(*taken)(struct prudence_cache *cache, void *object);
    /* Called just before the object is handed out. The caller asked for `size`; `zeroed` objects
     * are known to be zero. */
    void (*allocated)(struct slab *slab, void *object, size_t size, bool zeroed);
    /* Called when a live object keeps its place and gets `size` usable bytes. */
    void (*resized)(struct slab *slab, void *object, size_t size);
    void (*freed)(struct slab *slab, void *object, const char *what);
    void (*deferred)(struct slab *slab, void *object, const char *what);
    void (*after_deferral)(struct prudence_cache *cache, bool alone); /* the slab may be gone */
    /* Called when the grace period is over. If false, the extension calls extensions_released()
     * later. */
    bool (*safe)(struct slab *slab, void *object);
    void (*released)(struct slab *slab, void *object); /* no reader looks at the object any more */
    /* Returns true to take over the object; the extension calls cache_put_kept() later. */
    bool (*keeps)(struct slab *slab, void *object);

    /* --- questions about an object --- */
    /* Returns whether only the extension frees the object, whatever the user does. */
    bool (*owns)(struct slab *slab, const void *object);
    size_t (*size_asked)(const struct slab *slab, const void *object); /* 0 if unknown */
    void (*check_live)(const struct slab *slab, const void *object, const char *what);

    /* --- process --- */
    /* Prints, after the first line of a report, the known facts about the pointer. `slab` may be
     * NULL. */
    void (*explain)(const struct slab *slab, const void *pointer);
    void (*pressure)(void); /* frees kept memory at once; called with no lock held */
};

/* Defined by the program that embeds the slab layer. An extension's number is the index. Entries
 * may be NULL. */
extern const struct slab_extension *const slab_extensions[OS_EXTENSIONS];

#define EXTENSION_BIT(number) (UINT32_C(1) << (number))

/* The first large blocks of a process get an extension that their caches lack
 * (debug/large_guard.c). */
struct first_blocks {
    uint32_t extension; /* one bit; set when the process starts */
    int32_t margins;    /* number of blocks still to be made with margins; atomic */
    bool kept;          /* the extension is asked to keep the pages of freed blocks; atomic */
};
extern struct first_blocks slab_first;

/* Called before the first cache is made. */
void extensions_start(void);

/* Returns whether an extension of the set acts on objects; fast paths are then closed. */
bool extensions_meet_objects(uint32_t extensions);

/* Sets of extensions have one bit for each. */
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

/* Gives a slab an extension that the cache lacks. The fast paths of the slab, and of a cache that
 * users name, close before the extension becomes visible. Any thread may call this at any time. */
void slab_extend(struct slab *slab, unsigned number);

#endif /* SLAB_EXTENSION_H */
