/* SPDX-License-Identifier: MIT */
/*
 * Prudence: a slab memory allocator that knows which objects are about to be freed.
 *
 * A writer hands the old version of an object to prudence_free_deferred(). The allocator keeps it,
 * hidden and unwritten, until every reader that could hold it has finished (a grace period, see
 * <prudence/rcu.h>), and then hands it out again directly. There is no queue of callbacks, and no
 * thread that reclaims objects: the calls that allocate and defer do it. Threads of the library give
 * unused memory back to the system (option background), and run what <prudence/call.h> and
 * destructors ask for. "Paper" below is A. Prasad and K. Gopinath, "Prudent Memory Reclamation in
 * Procrastination-Based Synchronization", ASPLOS 2016.
 *
 * Conventions of every function here, unless its comment says otherwise:
 *  - Threads: may be called from any thread at any time; no registration is needed.
 *  - Signals: not async-signal-safe (like malloc). Only the read side in <prudence/rcu.h> is.
 *  - Fork: may be called in parent and child after fork(), also of a threaded process; and in
 *    handlers of pthread_atfork. A signal handler may fork, too; if the process has other threads,
 *    that child may only execute another program or _exit. A child of _Fork() or clone() is noticed
 *    when it matters, and reported once; it may read, allocate and free, unless another thread was
 *    in the library just then. What shares memory (vfork, posix_spawn) changes nothing.
 *  - Cancellation: none is a cancellation point of its own.
 *  - Misuse (foreign, interior or misaligned pointer, wrong cache, double free) is reported on
 *    standard error with pointer, cache and what happened, and then the process aborts. Doubles
 *    are caught for certain at the call under the option check=1, else if the object was the last of
 *    its cache that was freed, or deferred, on this CPU, or when both copies meet in the slab: in
 *    prudence_trim(), or at the end of the process. Everything else in that list is always caught at the call.
 *    docs/reference/misuse.md has a table of what is reported when. Options that look for more (guard,
 *    zero_on_free, quarantine; Valgrind, AddressSanitizer) are in docs/reference/options.md.
 *  - Waiting: allocating and deferring may wait for a grace period under memory pressure, never
 *    inside a read-side critical section, never with a lock of ours held, and never longer than the
 *    option wait_max for one and the same section of a reader that has a CPU, or wants none. So no lock
 *    that the caller holds can turn such a wait into a deadlock.
 */
#ifndef PRUDENCE_PRUDENCE_H
#define PRUDENCE_PRUDENCE_H

#include <prudence/platform.h> /* first */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of these headers. */
#define PRUDENCE_VERSION_MAJOR 0
#define PRUDENCE_VERSION_MINOR 1
#define PRUDENCE_VERSION_PATCH 0
#define PRUDENCE_VERSION       "0.1.0"

#if defined(__has_attribute)
#if __has_attribute(noplt)
#define PRUDENCE_NOPLT __attribute__((noplt)) /* one jump less in every call */
#endif
#endif
#ifndef PRUDENCE_NOPLT
#define PRUDENCE_NOPLT
#endif

#if defined(__GNUC__)
#define PRUDENCE_API    __attribute__((visibility("default")))
#define PRUDENCE_MALLOC __attribute__((malloc, warn_unused_result))
#define PRUDENCE_KEEP   __attribute__((warn_unused_result))
#else
#define PRUDENCE_API
#define PRUDENCE_MALLOC
#define PRUDENCE_KEEP
#endif

struct prudence_cache;
struct prudence_domain;

/* The version of the library that is loaded, as text: "0.1.0". Async-signal-safe. */
PRUDENCE_API const char *prudence_version(void);

/* ------------------------------------------------------------------------- objects of any size */

/*
 * Allocates `size` bytes, aligned for any type (16 bytes); the contents are undefined. A size of 0
 * gives a unique pointer that must be freed. Returns NULL with errno ENOMEM when neither the system
 * nor the option `limit` gives memory, even after a grace period (paper, section 4.2, "Handling
 * memory pressure"). Cost: a few nanoseconds while the object cache has an object.
 */
PRUDENCE_API PRUDENCE_NOPLT PRUDENCE_MALLOC void *prudence_malloc(size_t size);

/* As prudence_malloc(count * size), zeroed. ENOMEM when the product overflows. */
PRUDENCE_API PRUDENCE_MALLOC void *prudence_calloc(size_t count, size_t size);

/*
 * Changes the size of `object` to `size` bytes, moving it if need be; the bytes up to the smaller
 * of both sizes are kept. realloc(NULL, n) allocates. A size of 0 is not a free: it gives a block
 * of size 0. On failure NULL with errno ENOMEM, and the old object is untouched.
 */
PRUDENCE_API void *prudence_realloc(void *object, size_t size);

/*
 * As prudence_malloc, aligned to `alignment` bytes: a power of two. `size` need not be a multiple
 * of it. EINVAL (and NULL) when the alignment is not a power of two.
 */
PRUDENCE_API PRUDENCE_MALLOC void *prudence_aligned_alloc(size_t alignment, size_t size);

/* The bytes that may be used behind `object` (at least those asked for); 0 for NULL. */
PRUDENCE_API size_t prudence_usable_size(const void *object);

/*
 * Frees `object`, of any cache or size, for immediate reuse. NULL is ignored; errno is kept. No
 * reader may hold it: use prudence_free_deferred() for what readers could still see.
 */
PRUDENCE_API PRUDENCE_NOPLT void prudence_free(void *object);

/*
 * As prudence_free; `size` is what was asked for when `object` was allocated. A size that cannot
 * be that of this object is reported as misuse.
 */
PRUDENCE_API PRUDENCE_NOPLT void prudence_free_sized(void *object, size_t size);

/*
 * Frees `object` once every read-side critical section of its cache's domain that is running now
 * has ended (paper: kfree_deferred, Listing 2, Algorithm 1). Call it after the object is unlinked,
 * that is: when new readers cannot find it. Until the grace period is over the memory is neither
 * written nor handed out. May be called inside a read-side critical section and with any locks
 * held. Always succeeds. NULL is ignored; errno is kept. Cost: that of prudence_free.
 */
PRUDENCE_API PRUDENCE_NOPLT void prudence_free_deferred(void *object);

/* ---------------------------------------------------------------------- caches of equal objects */

/* For prudence_cache_attr.flags. */
enum prudence_cache_flags {
    /*
     * Type-safe memory, as SLAB_TYPESAFE_BY_RCU: an object freed with prudence_cache_free() may be
     * handed out again at once, but its page stays a slab of this cache until a grace period after
     * the slab became free. Readers must check that they still have the object they looked for.
     */
    PRUDENCE_CACHE_TYPESAFE = 1 << 0,
    /* With a destructor: deferred objects are destroyed soon after their grace period, by a thread
     * of the library, though nobody wants their memory yet. */
    PRUDENCE_CACHE_DESTRUCT_SOON = 1 << 1,
};

/* Attributes of a cache; zero is the default of each. Set `size` to sizeof this structure. */
struct prudence_cache_attr {
    size_t size;       /* sizeof(struct prudence_cache_attr), so that it can grow */
    size_t alignment;  /* of each object: a power of two up to 4096; 0: 16 (8 below 16 bytes) */
    unsigned flags;    /* of enum prudence_cache_flags */
    unsigned reserved; /* 0 */
    /*
     * Called once for each object when its slab is made, never when an object is handed out
     * again: a freed object must be left in its constructed state. It runs in an allocation that needs a
     * slab, and may do what that allocation's caller may there, but not use its own cache.
     */
    void (*constructor)(void *object, void *context);
    void *context;                  /* the constructor's second argument */
    struct prudence_domain *domain; /* whose readers see the objects; NULL: the default domain */
    size_t object_cache_bytes; /* of one CPU's object cache, at most; 0: a share of cache_per_cpu */
    /*
     * Called, with `context`, exactly once for each object that is freed or deferred. Of a freed one:
     * in prudence_cache_free. Of a deferred one: after its grace period, when it is about to be handed
     * out again, in prudence_cache_alloc of that cache; or before its slab goes back, then on a thread
     * of the library (which the first need starts), or in prudence_cache_shrink, _barrier or _destroy.
     * Never inside a read-side section, nor in another destructor: an allocation there takes memory
     * that needs no destructor. (A free runs it there all the same, since the caller asked for it.)
     * With a constructor it must leave the object as constructed. It may do what a callback may
     * (<prudence/call.h>), also allocate from its own cache and defer objects of it; but it may not wait for
     * callbacks or destructors (EDEADLK). It must return. Such a cache has no fast paths.
     */
    void (*destructor)(void *object, void *context);
};

/*
 * Makes a cache of objects of `object_size` bytes (1 to 32768). `name` is copied (up to 31 bytes);
 * it stands in statistics and messages and need not be unique. Returns NULL with errno EINVAL
 * (size, alignment, flags, name NULL or empty: a message on standard error names the one), EAGAIN (the same: called by a
 * function that the library calls while it starts, such as the program's own getpid) or ENOMEM.
 */
PRUDENCE_API struct prudence_cache *prudence_cache_create(const char *name, size_t object_size,
                                                          const struct prudence_cache_attr *attr);

/* Allocates an object; contents undefined, or as constructed and left. NULL with errno ENOMEM. */
PRUDENCE_API PRUDENCE_NOPLT PRUDENCE_MALLOC void *
prudence_cache_alloc(struct prudence_cache *cache);

/* Frees an object of `cache` for immediate reuse. NULL is ignored. */
PRUDENCE_API PRUDENCE_NOPLT void prudence_cache_free(struct prudence_cache *cache, void *object);

/* As prudence_free_deferred, for an object of `cache` (paper: kmem_cache_free_deferred). */
PRUDENCE_API PRUDENCE_NOPLT void prudence_cache_free_deferred(struct prudence_cache *cache,
                                                              void *object);

/*
 * For a writer that replaces objects all the time: defers `old`, which is unlinked already, and returns an
 * object for the *next* update. The writer keeps that one in hand:
 *
 *     spare = prudence_cache_alloc(cache);               // before the first update
 *     ...
 *     if (!spare && !(spare = prudence_cache_replace(cache, NULL)))
 *         return ENOMEM;                                 // nothing was changed
 *     *spare = new_contents;                             // fill
 *     old = entry->object;
 *     prudence_assign_pointer(entry->object, spare);     // publish, which unlinks `old`
 *     spare = prudence_cache_replace(cache, old);        // defer it, and have one for next time
 *     ...
 *     prudence_cache_free(cache, spare);                 // after the last update
 *
 * This is the only right order. The object that is returned is not yet published, so it cannot be the one that
 * took the place of `old`: a call which allocates the new version and defers the old one in one go would stand
 * before the publication, and would defer an object that new readers still find. Their sections begin after
 * the grace period that the deferral waits for, which protects none of them.
 *
 * `old` is deferred in any case, also when NULL is returned: then there is no memory for another object
 * (errno ENOMEM), and only that. `old` may be NULL: nothing is deferred. Errors, waiting and misuse are those of
 * prudence_cache_free_deferred and prudence_cache_alloc, which this is in that order. Cost: less than that of
 * both, because there is one call, and the cache is looked at once.
 */
PRUDENCE_API PRUDENCE_NOPLT PRUDENCE_KEEP void *prudence_cache_replace(struct prudence_cache *cache,
                                                                       void *old);

/*
 * Allocates up to `count` objects into `objects`. Returns how many there are: less than `count`
 * only when memory ran out (errno ENOMEM); those are the caller's all the same.
 */
PRUDENCE_API size_t prudence_cache_alloc_bulk(struct prudence_cache *cache, size_t count,
                                              void **objects);

/* Frees, or defers, each of `count` objects; NULLs among them are ignored. */
PRUDENCE_API void prudence_cache_free_bulk(struct prudence_cache *cache, size_t count,
                                           void **objects);
PRUDENCE_API void prudence_cache_free_deferred_bulk(struct prudence_cache *cache, size_t count,
                                                    void **objects);

/*
 * As prudence_cache_replace for each of `count` objects, in place: all that are in `objects` are deferred (NULLs are
 * ignored), then as many objects as can be had stand there, from the first on, and NULL behind them. Returns how
 * many: less than `count` only when memory ran out (errno ENOMEM).
 */
PRUDENCE_API size_t prudence_cache_replace_bulk(struct prudence_cache *cache, size_t count,
                                                void **objects);

/*
 * Empties the object caches of all CPUs into their slabs, merges what is safe, and gives every
 * free slab back. Waits for nothing, but pushes grace periods on: what was deferred before a prudence_synchronize() that
 * has returned is merged as well, unless a reader is inside a section now. With a destructor: runs those that keep a slab from going; inside a
 * read-side section, and in a destructor, it leaves them to the library's thread. Returns the bytes
 * given back. Cost: a system call for each CPU that holds objects.
 */
PRUDENCE_API size_t prudence_cache_shrink(struct prudence_cache *cache);

/*
 * Waits until every object of `cache` that was deferred before this call is safe and, if there is a
 * destructor, until that has returned, in whichever thread it runs; for no other cache's, and for no callbacks.
 * Ends although others go on deferring. Returns 0, or an error number: EINVAL for NULL; EDEADLK, with a
 * report that names the place and the thread, inside a read-side critical section (where the cache has no
 * destructor: as prudence_domain_synchronize of its domain), and if it has one in any destructor.
 */
PRUDENCE_API int prudence_cache_barrier(struct prudence_cache *cache);

/*
 * Destroys `cache`. Waits for the grace period of this cache's own deferred objects, for their
 * destructors, and for nothing else. Returns 0, or an error number with the cache as usable as before:
 * EBUSY while objects are live (which is reported once for each calling place, with their number, and under
 * the option check=1 with the callers that allocated the first of them), or in a handler of pthread_atfork; EDEADLK
 * where prudence_cache_barrier gives it; EINVAL for NULL. Nobody may use the cache any more
 * when it is called: the use of one of the 64 caches that were destroyed last stops the process, with its
 * name and the caller's.
 */
PRUDENCE_API int prudence_cache_destroy(struct prudence_cache *cache);

/* ----------------------------------------------------------------------------- the whole process */

/*
 * prudence_cache_shrink for every cache, and unused pages back to the system. Returns the bytes
 * given back. Waits for nothing.
 */
PRUDENCE_API size_t prudence_trim(void);

/*
 * Sets the option `name` to `value`, as PRUDENCE_OPTIONS="name=value,..." does at start. The table
 * of options is in docs/reference/options.md. Returns 0, or an error number: ENOENT no such option, EINVAL
 * not a value for it (either is reported on standard error, by name and value), EBUSY an option
 * that can be set only before the first allocation. Threads set options one after the other. Not in a
 * signal handler.
 */
PRUDENCE_API int prudence_option_set(const char *name, const char *value);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_PRUDENCE_H */
