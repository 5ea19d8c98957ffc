/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The steps at which extensions are called. A row is a function of struct slab_extension, and
 * extensions_NAME(), which calls that function of each extension of a set. Includers define the
 * macros below, or STEP(name) for all of them.
 *
 *   EACH(name, set, parameters, arguments)    calls all
 *   EVERY                                     calls all; true if all return true
 *   ANY                                       calls one after the other until one returns true
 *   FIRST(type, name, ...)                    the same, until one returns a value other than 0
 *   MADE(name, undo, type, owner)             calls all for a new owner. If one returns false
 *                                             (no memory), undoes the earlier ones
 *   THROUGH(type, name, ...)                  has a function of its own in extension.c
 */
#ifdef STEP
#define EACH(name, ...)          STEP(name)
#define EVERY(name, ...)         STEP(name)
#define ANY(name, ...)           STEP(name)
#define FIRST(type, name, ...)   STEP(name)
#define MADE(name, ...)          STEP(name)
#define THROUGH(type, name, ...) STEP(name)
#endif

/* --- life of a cache --- */

/* Says which steps the extension wants. NULL wants no cache at the start. */
THROUGH(enum extension_wish, wants, (const struct cache_layout *layout))
MADE(cache_made, cache_going, struct prudence_cache, cache)
EACH(cache_going, OF_CACHE, (struct prudence_cache * cache), (cache))
/* Gives up freed objects of the cache that are kept. Does not wait. */
EACH(flush, OF_CACHE, (struct prudence_cache * cache), (cache))
/* The cache is to be destroyed. Gives up all objects, and waits for those that other threads are
 * about to give up. */
EACH(empty, OF_CACHE, (struct prudence_cache * cache), (cache))

/* --- life of a slab --- */

/* Called before any object is handed out. */
MADE(made, going, struct slab, slab)
/* Called after construction; not for large blocks and lone objects. */
EACH(ready, OF_SLAB, (struct slab * slab), (slab))
/* Called before the pages go. Frees the pages of a lone object. */
EACH(going, OF_SLAB, (struct slab * slab), (slab))
/* Called after `going`, when lookups no longer find the slab's pages. If true, the extension frees
 * the pages later, and has the slab's own memory for notes until os_meta_free(). Changes no
 * mapping, like `going`. */
ANY(keep_pages, OF_SLAB, (struct slab * slab), (slab))
/* The slab is free. If false, the extension still needs the pages. */
EVERY(may_go, OF_SLAB, (struct slab * slab), (slab))
/* Called after the lock is released if may_go refused a slab. */
EACH(kept, OF_ALL, (void), ())

/* --- life of an object --- */

/* Makes an object that is alone in a slab, in place of one from the cache. May return NULL. */
FIRST(void *, instead, OF_CACHE, (struct prudence_cache * cache, size_t size), (cache, size))
/* Called just before the object is handed out. The caller asked for `size`; `zeroed` objects are
 * known to be zero. */
EACH(allocated, OF_SLAB, (struct slab * slab, void *object, size_t size, bool zeroed),
     (slab, object, size, zeroed))
/* Called when a live object keeps its place and gets `size` usable bytes. */
EACH(resized, OF_SLAB, (struct slab * slab, void *object, size_t size), (slab, object, size))
EACH(freed, OF_SLAB, (struct slab * slab, void *object, const char *what), (slab, object, what))
EACH(deferred, OF_SLAB, (struct slab * slab, void *object, const char *what), (slab, object, what))
/* Called when the grace period is over. If false, the extension calls extensions_released()
 * later. */
EVERY(safe, OF_SLAB, (struct slab * slab, void *object), (slab, object))
/* No reader reads the object any more. If `may_keep`, an extension takes the object over by
 * returning true, and calls gate_put_kept() later. */
ANY(released, OF_SLAB, (struct slab * slab, void *object, bool may_keep), (slab, object, may_keep))

/* --- questions about an object --- */

/* Returns the size that the program asked for, or 0 if unknown. */
FIRST(size_t, size_asked, OF_SLAB, (const struct slab *slab, const void *object), (slab, object))
/* Reports an object that is not live. Returns false if only the extension frees the object,
 * whatever the program does. */
EVERY(check_live, OF_SLAB, (const struct slab *slab, const void *object, const char *what),
      (slab, object, what))

/* Returns whether a reallocation must move the object. */
ANY(must_move, OF_SLAB, (const struct slab *slab), (slab))

/* --- process --- */

/* Prints, after the first line of a report, the known facts about the pointer. `slab` may be
 * NULL. */
EACH(explain, OF_ALL, (const struct slab *slab, const void *pointer), (slab, pointer))
/* Frees kept memory at once. Called with no lock held. */
EACH(pressure, OF_ALL, (void), ())

#undef STEP
#undef EACH
#undef EVERY
#undef ANY
#undef FIRST
#undef MADE
#undef THROUGH
