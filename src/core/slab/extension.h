/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Extensions add steps to the life of objects that the paper does not have, such as checks,
 * destructors and expiration dates.
 *
 * When a cache is made, it gets the extensions that want it. Slabs of the cache get the same ones,
 * except those that read allocations only (EXTENSION_INSTEAD); extensions_add() adds one more to
 * a slab later. If a cache or slab has an extension that acts on objects, fast paths are closed, so
 * that the objects come to the gate (gate.c). The gate calls the extensions to allocate, free and
 * defer, and merges call them for safe objects, from the first to the last of the table:
 *
 *   allocate   instead; or, for an object of the cache, allocated
 *   free       freed, released
 *   defer      deferred; the object waits for a grace period
 *   safe       safe; released, unless one of them takes care of that later
 *
 * extension_steps.h lists the steps. In that order they are also called for caches and slabs.
 *
 * Locks: `may_go` and `safe` may run under a node's lock, and `safe` as the owner of a CPU's
 * caches, so these two take no lock, make no system call and do not wait. `going`, `keep_pages` and
 * `kept` may run under slab_caches_lock, and `explain` under any lock. All others run without a
 * lock of the slab layer. The program may hold locks in any case. A thread that carries the slab
 * calls `going` and `keep_pages`.
 */
#ifndef SLAB_EXTENSION_H
#define SLAB_EXTENSION_H

#include "os/os.h"

struct slab;
struct prudence_cache;
struct cache_layout;

/* What an extension wants of a cache. With EXTENSION_INSTEAD only `instead` is called, and the
 * extension belongs only to slabs of lone objects that it made. Frees and deferrals keep their fast
 * paths. */
enum extension_wish { EXTENSION_UNWANTED, EXTENSION_WANTED, EXTENSION_INSTEAD };

static inline enum extension_wish extension_wanted_if(bool wanted)
{
    return wanted ? EXTENSION_WANTED : EXTENSION_UNWANTED;
}

/* Functions of an extension. A NULL function does nothing at that step. */
/* Types and lists of parameters take no parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */
struct slab_extension {
#define EACH(name, set, parameters, arguments)        void(*name) parameters;
#define EVERY(name, set, parameters, arguments)       bool(*name) parameters;
#define ANY(name, set, parameters, arguments)         bool(*name) parameters;
#define FIRST(type, name, set, parameters, arguments) type(*name) parameters;
#define MADE(name, undo, type, owner)                 bool (*name)(type * owner);
#define THROUGH(type, name, parameters)               type(*name) parameters;
#include "slab/extension_steps.h"
};

/* Defined by the program that embeds the slab layer. An extension's number is the index. Entries
 * may be NULL. */
extern const struct slab_extension *const slab_extensions[OS_EXTENSIONS];

#define EXTENSION_BIT(number) (UINT32_C(1) << (number))

/* The first large blocks of a process get an extension that their caches lack
 * (guard/large_guard.c). */
struct first_blocks {
    uint32_t extension; /* one bit; set when the process starts */
    int32_t margins;    /* number of blocks still to be made with margins; atomic */
    bool kept;          /* the extension is asked to keep the pages of freed blocks; atomic */
};
extern struct first_blocks slab_first;

/* Called before the first cache is made. */
void extensions_start(void);

/* Returns whether an extension of the set acts on objects; fast paths are then closed. Sets of
 * extensions have one bit for each. */
bool extensions_meet_objects(uint32_t extensions);

/* Returns whether an extension of the set reads allocations or deferrals as they are made. */
bool extensions_meet_aside(uint32_t extensions);

/* Returns the extensions that want a cache, and in *of_slabs those that its slabs have as well. */
uint32_t extensions_wanted(const struct cache_layout *layout, uint32_t *of_slabs);

#define EACH(name, set, parameters, arguments)        void extensions_##name parameters;
#define EVERY(name, set, parameters, arguments)       bool extensions_##name parameters;
#define ANY(name, set, parameters, arguments)         bool extensions_##name parameters;
#define FIRST(type, name, set, parameters, arguments) type extensions_##name parameters;
#define MADE(name, undo, type, owner)                 bool extensions_##name(type *owner);
#define THROUGH(type, name, parameters)
#include "slab/extension_steps.h"
/* NOLINTEND(bugprone-macro-parentheses) */

/* Called for an object that is merged, which goes to its slab or to an object cache. */
static inline void extensions_merged(struct slab *slab, void *object)
{
    if (extensions_safe(slab, object))
        extensions_released(slab, object, false);
}

/* Gives a slab an extension that the cache lacks. The fast paths of the slab, and of a cache that
 * users name, close before the extension becomes visible. Any thread may call this at any time. */
void extensions_add(struct slab *slab, unsigned number);

/* Gives an extension to the caches that want it only now. Their later slabs have it as well if they
 * are wanted; slabs that exist stay without. Paths close before the extension becomes visible, as
 * above. Cold caches get it when they become warm (cache_warm). The caller keeps other threads from
 * making caches. */
void extensions_begin(unsigned number);

#endif /* SLAB_EXTENSION_H */
