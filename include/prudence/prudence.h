/* SPDX-License-Identifier: MIT */
/*
 * Prudence, a slab memory allocator that knows which objects are about to be freed.
 *
 * A writer hands the old version of an object to prudence_free_deferred(). The allocator keeps the
 * object, hidden and unwritten, until every reader that could hold it has finished (a grace period,
 * see <prudence/rcu.h>), and then hands the object out again directly. There is no queue of
 * callbacks, and no thread that reclaims objects. The calls that allocate and defer reclaim them.
 * Threads of the library drain and purge unused memory (option background), and run
 * destructors and the callbacks of <prudence/call.h>. "Paper" below is A. Prasad and K. Gopinath,
 * "Prudent Memory Reclamation in Procrastination-Based Synchronization", ASPLOS 2016.
 *
 * Conventions of every function here, unless the function's comment says otherwise:
 *  - Threads: any thread may call the functions at any time. Threads need not register.
 *  - Signals: not async-signal-safe (like malloc). Only the read side in <prudence/rcu.h> is.
 *  - Fork: may be called in parent and child after fork(), also of a threaded process, and in
 *    handlers of pthread_atfork. A signal handler may fork, too. If the process has other threads,
 *    that child may only execute another program or _exit. The library notices a child of _Fork()
 *    or clone() when it matters, and reports the child once. Such a child may read, allocate and
 *    free, unless another thread was in the library at that moment. Children that share memory
 *    (vfork, posix_spawn) change nothing.
 *  - Cancellation: no function is a cancellation point of its own.
 *  - Misuse (a foreign, interior or misaligned pointer, the wrong cache, a double free) is reported
 *    on standard error with the pointer, the cache and what happened. Then the process aborts. All
 *    but doubles are always caught at the call. Doubles are caught at the call under the option
 *    check=1. Otherwise they are caught at the call if the object is the last of its cache that was
 *    freed, or deferred, on this CPU, or later, when both copies meet in the slab (in
 *    prudence_trim(), or at the end of the process). docs/reference/misuse.md has a table of when
 *    each misuse is reported. Options that search for more (guard, zero_on_free, quarantine;
 *    Valgrind, AddressSanitizer) are in docs/reference/options.md.
 *  - Bindings: a function that a header defines is in the library under the same name as well
 *    (<prudence/bindings.h>).
 *  - Waiting: allocating and deferring may wait for a grace period under memory pressure, but never
 *    inside a read-side critical section and never with a lock of the library held. They wait no
 *    longer than the option wait_max for one and the same section of a reader that has a CPU, or
 *    wants none. So no lock that the caller holds can turn such a wait into a deadlock.
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

/* Version of these headers. */
#define PRUDENCE_VERSION_MAJOR 0
#define PRUDENCE_VERSION_MINOR 3
#define PRUDENCE_VERSION_PATCH 0
#define PRUDENCE_VERSION       "0.3.0-dev"

#if defined(__has_attribute)
#if __has_attribute(noplt)
#define PRUDENCE_NOPLT __attribute__((noplt)) /* saves a jump in every call */
#endif
#endif
#ifndef PRUDENCE_NOPLT
#define PRUDENCE_NOPLT
#endif

/*
 * What compilers may check, as of malloc (ADR 10): a result that must be used, the numbers of the
 * arguments that are a size (or two that are multiplied) and an alignment, and for GCC what frees
 * at once.
 */
#if defined(__GNUC__)
#define PRUDENCE_API          __attribute__((visibility("default")))
#define PRUDENCE_KEEP         __attribute__((warn_unused_result))
#define PRUDENCE_SIZE1        __attribute__((alloc_size(1)))
#define PRUDENCE_SIZE2        __attribute__((alloc_size(2)))
#define PRUDENCE_SIZE12       __attribute__((alloc_size(1, 2)))
#define PRUDENCE_ALIGN1_SIZE2 __attribute__((alloc_align(1), alloc_size(2)))
#define PRUDENCE_ALIGN2_SIZE3 __attribute__((alloc_align(2), alloc_size(3)))
#else
#define PRUDENCE_API
#define PRUDENCE_KEEP
#define PRUDENCE_SIZE1
#define PRUDENCE_SIZE2
#define PRUDENCE_SIZE12
#define PRUDENCE_ALIGN1_SIZE2
#define PRUDENCE_ALIGN2_SIZE3
#endif
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define PRUDENCE_MALLOC                                                                            \
    __attribute__((malloc, malloc(prudence_free), malloc(prudence_free_sized), warn_unused_result))
#elif defined(__GNUC__)
#define PRUDENCE_MALLOC __attribute__((malloc, warn_unused_result))
#else
#define PRUDENCE_MALLOC
#endif

struct prudence_cache;
struct prudence_domain;

/* Returns the version of the loaded library as text, "0.2.0" for example, between releases
 * "0.3.0-dev". Async-signal-safe. */
PRUDENCE_API const char *prudence_version(void);

/* ------------------------------------------------------------------------- objects of any size */

/*
 * Frees `object`, of any cache or size, for immediate reuse. NULL is ignored; errno is kept. No
 * reader may hold the object; use prudence_free_deferred() for objects that readers could still
 * see.
 */
PRUDENCE_API PRUDENCE_NOPLT void prudence_free(void *object);

/*
 * Works like prudence_free. `size` is the size that `object` was allocated with. A size that this
 * object cannot have been allocated with is reported as misuse.
 */
PRUDENCE_API PRUDENCE_NOPLT void prudence_free_sized(void *object, size_t size);

/*
 * Allocates `size` bytes, aligned for any type (16 bytes), with undefined contents. A size of 0
 * gives a unique pointer that must be freed. Returns NULL with errno ENOMEM when neither the system
 * nor the option `limit` allows more memory, even after a grace period (paper, section 4.2,
 * "Handling memory pressure"). Cost: a few nanoseconds while the object cache has an object.
 */
PRUDENCE_API PRUDENCE_NOPLT PRUDENCE_MALLOC PRUDENCE_SIZE1 void *prudence_malloc(size_t size);

/*
 * Works like prudence_malloc(count * size) and zeroes the memory. ENOMEM if the product overflows.
 */
PRUDENCE_API PRUDENCE_MALLOC PRUDENCE_SIZE12 void *prudence_calloc(size_t count, size_t size);

/*
 * Changes the size of `object` to `size` bytes and moves the object if necessary. The contents are
 * kept up to the smaller of both sizes. realloc(NULL, n) allocates. A size of 0 does not free, but
 * gives a block of size 0. On failure returns NULL with errno ENOMEM and leaves the old object
 * untouched.
 */
PRUDENCE_API PRUDENCE_KEEP PRUDENCE_SIZE2 void *prudence_realloc(void *object, size_t size);

/*
 * Works like prudence_malloc, with memory aligned to `alignment` bytes, which must be a power of
 * two (otherwise NULL with errno EINVAL). `size` need not be a multiple of the alignment.
 */
PRUDENCE_API PRUDENCE_MALLOC PRUDENCE_ALIGN1_SIZE2 void *prudence_aligned_alloc(size_t alignment,
                                                                                size_t size);

/*
 * Works like prudence_realloc, with memory aligned to `alignment` bytes, which must be a power of
 * two (otherwise NULL with errno EINVAL). `object` may be aligned in any way. If the alignment is
 * more than 16, a large block is copied when it grows.
 */
PRUDENCE_API PRUDENCE_KEEP PRUDENCE_ALIGN2_SIZE3 void *
prudence_aligned_realloc(void *object, size_t alignment, size_t size);

/*
 * Returns how many bytes the library has for `object`, at least the size asked for; 0 for NULL. A
 * program that wants to use more than it asked for must ask again, by prudence_realloc(object,
 * prudence_usable_size(object)), which moves few objects. Compilers know the size asked for, and
 * with _FORTIFY_SOURCE=3 the process ends where more is written.
 */
PRUDENCE_API size_t prudence_usable_size(const void *object);

/*
 * Frees `object` once every read-side critical section of its cache's domain that is running now
 * has ended (paper: kfree_deferred, Listing 2, Algorithm 1). Call this after the object is
 * unlinked, so that new readers cannot find the object. Until the grace period is over, the memory
 * is neither written nor handed out. May be called inside a read-side critical section and with any
 * locks held. Always succeeds. NULL is ignored; errno is kept. Costs as much as prudence_free.
 */
PRUDENCE_API PRUDENCE_NOPLT void prudence_free_deferred(void *object);

/* ---------------------------------------------------------------------- caches of equal objects */

/* Flags of prudence_cache_attr.flags. */
enum prudence_cache_flags {
    /*
     * Makes memory type-safe, like SLAB_TYPESAFE_BY_RCU. An object freed with prudence_cache_free()
     * may be handed out again at once, but its page stays a slab of this cache until a grace period
     * after the slab became free. Readers must check that they still have the object they looked
     * for.
     */
    PRUDENCE_CACHE_TYPESAFE = 1 << 0,
    /*
     * Needs a destructor. A thread of the library destroys deferred objects within milliseconds of
     * their grace period, even if no thread wants their memory yet.
     */
    PRUDENCE_CACHE_DESTRUCT_SOON = 1 << 1,
    /*
     * The program stores addresses of objects in forms of its own, for example with marks in the
     * lowest bits. So that no allocated object counts as a leak, leak checkers are shown each.
     */
    PRUDENCE_CACHE_HIDDEN_POINTERS = 1 << 4,
};

/*
 * Attributes of a cache. Zero is the default of each. Set `size` to sizeof this structure, which
 * grows at the end. A program that was compiled with an older version gets the defaults of members
 * that it does not have. A newer member that is not 0, and that this library does not know, is
 * refused (EINVAL).
 */
struct prudence_cache_attr {
    size_t size;       /* sizeof(struct prudence_cache_attr); new members may follow */
    size_t alignment;  /* of each object, a power of two up to 4096; 0: 16 (8 below 16 bytes) */
    unsigned flags;    /* of enum prudence_cache_flags */
    unsigned reserved; /* 0 */
    /*
     * Called once for each object when its slab is made, never when an object is handed out again,
     * so a freed object must be freed in its constructed state. The constructor runs in an
     * allocation that needs a slab. There it may do whatever the caller of that allocation may,
     * except use its own cache.
     */
    void (*constructor)(void *object, void *context);
    void *context;                  /* the constructor's second argument */
    struct prudence_domain *domain; /* whose readers see the objects; NULL: the default domain */
    size_t object_cache_bytes; /* most bytes of one CPU's object cache; 0: from cache_per_cpu */
    /*
     * Called with `context` exactly once for each object that is freed or deferred. For a freed
     * object, prudence_cache_free calls it. For a deferred object, after the grace period, it is
     * called in prudence_cache_alloc of that cache before the object is handed out again, for up to
     * 32 objects at a time: those that this call and later ones return. If the slab goes back
     * before that, a thread of the library (which the first need starts) calls it, or
     * prudence_cache_shrink, _barrier or _destroy does. An allocation inside a
     * read-side section or another destructor runs no destructor; an object that needs none is
     * taken. (A free there does run the destructor, since the caller asked for that.) If the cache
     * has a constructor, the destructor must leave the object as constructed. It may do what a
     * callback may (<prudence/call.h>), also allocate from its own cache and defer objects of that
     * cache, but may not wait for callbacks or destructors (EDEADLK). It must return.
     */
    void (*destructor)(void *object, void *context);
};

/*
 * Makes a cache of objects of `object_size` bytes (1 to 131072). `name` is copied (up to 31 bytes);
 * it appears in statistics and messages, and need not be unique. Returns NULL with errno EINVAL
 * (size, alignment, flags, or name NULL or empty), EAGAIN (called by a function that the library
 * calls while it starts, such as the program's own getpid) or ENOMEM. For EINVAL and EAGAIN a
 * message on standard error names the cause.
 */
PRUDENCE_API struct prudence_cache *prudence_cache_create(const char *name, size_t object_size,
                                                          const struct prudence_cache_attr *attr);

/*
 * Allocates an object with undefined contents, or those of the constructor or the last user.
 * Returns NULL with errno ENOMEM.
 */
PRUDENCE_API PRUDENCE_NOPLT PRUDENCE_MALLOC void *
prudence_cache_alloc(struct prudence_cache *cache);

/* Frees an object of `cache` for immediate reuse. NULL is ignored. */
PRUDENCE_API PRUDENCE_NOPLT void prudence_cache_free(struct prudence_cache *cache, void *object);

/* Works like prudence_free_deferred for an object of `cache` (paper: kmem_cache_free_deferred). */
PRUDENCE_API PRUDENCE_NOPLT void prudence_cache_free_deferred(struct prudence_cache *cache,
                                                              void *object);

/*
 * Defers `old`, which is unlinked already, and returns an object for the *next* update. This is for
 * a writer that replaces objects all the time. The writer keeps the returned object in hand:
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
 * This is the only right order. The returned object is not published yet, so another one has
 * replaced `old`. A call that allocated the new version and deferred the old one at once would come
 * before the publication, and would defer an object that new readers still find. Their sections
 * begin after the grace period that the deferral waits for, so that wait protects none of them.
 *
 * `old` is always deferred, also when NULL is returned because there is no memory for another
 * object (errno ENOMEM). If `old` is NULL, nothing is deferred. Errors, waiting and misuse are the
 * same as calling prudence_cache_free_deferred and then prudence_cache_alloc. Cost: less than both
 * together, because there is one call and the cache is looked up once.
 */
PRUDENCE_API PRUDENCE_NOPLT PRUDENCE_KEEP void *prudence_cache_replace(struct prudence_cache *cache,
                                                                       void *old);

/*
 * Allocates up to `count` objects into `objects`. Returns the number of objects, which is less than
 * `count` only if memory ran out (errno ENOMEM). The caller owns those that were allocated.
 */
PRUDENCE_API size_t prudence_cache_alloc_bulk(struct prudence_cache *cache, size_t count,
                                              void **objects);

/* Free, or defer, each of `count` objects; NULLs among them are ignored. */
PRUDENCE_API void prudence_cache_free_bulk(struct prudence_cache *cache, size_t count,
                                           void **objects);
PRUDENCE_API void prudence_cache_free_deferred_bulk(struct prudence_cache *cache, size_t count,
                                                    void **objects);

/*
 * Does prudence_cache_replace for each of `count` objects, in place. All objects in `objects` are
 * deferred (NULLs are ignored). Then as many new objects as memory allows are stored from the first
 * entry on, and NULL in the remaining entries. Returns the number of new objects, which is less
 * than `count` only if memory ran out (errno ENOMEM).
 */
PRUDENCE_API size_t prudence_cache_replace_bulk(struct prudence_cache *cache, size_t count,
                                                void **objects);

/*
 * Empties the object caches of all CPUs into their slabs, merges safe objects, and frees every free
 * slab. Never waits, but pushes grace periods on, so objects that were deferred before a
 * prudence_synchronize() that has returned are merged as well, unless a reader is inside a section
 * now. If the cache has a destructor, runs those destructors that keep a slab from going back;
 * inside a read-side section, and in a destructor, leaves them to the library's thread. Returns the
 * number of bytes of these slabs. Cost: a system call for each CPU that holds objects.
 */
PRUDENCE_API size_t prudence_cache_shrink(struct prudence_cache *cache);

/*
 * Waits until every object of `cache` that was deferred before this call is safe and, if there is a
 * destructor, until the destructor has returned, in whichever thread it runs. Does not wait for
 * other caches or for callbacks. Ends even if others go on deferring. Returns 0, or an error
 * number: EINVAL for NULL; EDEADLK, with a report that names the place and the thread, if the call
 * would wait for itself. Without a destructor these are the sections in which
 * prudence_domain_synchronize of the cache's domain fails, and being online in any qsbr domain.
 * With one they are any read-side critical section, and any destructor. With both kinds, a hazard
 * pointer of the thread that names a deferred object of the cache; other names block no thread. A
 * movable hazard pointer may be another thread's, so for that the call waits, and reports it after
 * the option stall_timeout. EBUSY in a handler of pthread_atfork that runs between the library's
 * own, because the threads that this waits for may wait for the end of the fork.
 */
PRUDENCE_API int prudence_cache_barrier(struct prudence_cache *cache);

/*
 * Works like prudence_cache_barrier, but returns ETIMEDOUT if objects still wait after this number
 * of nanoseconds. They end later, as without this call. The caller is late by the destructors that
 * run here at that time: those of 32 objects at most.
 */
PRUDENCE_API int prudence_cache_barrier_timed(struct prudence_cache *cache, uint64_t nanoseconds);

/*
 * Destroys `cache`. Waits for the grace period of this cache's own deferred objects, for their
 * destructors, and for nothing else. Returns 0, or an error number, with the cache as usable as
 * before: EBUSY while objects are live, or in a handler of pthread_atfork; EDEADLK where
 * prudence_cache_barrier fails; EINVAL for NULL. Live objects are reported once for each calling
 * place, with their number and, under the option check=1, with the callers that allocated the first
 * of them. No thread may use the cache once this is called. Use of one of the 64 caches that were
 * destroyed last stops the process with the names of that cache and of the function called. Destroy
 * tables that hold the cache's objects before the cache, and the cache before its domain.
 */
PRUDENCE_API int prudence_cache_destroy(struct prudence_cache *cache);

/*
 * Works like prudence_cache_destroy, but where that would return EDEADLK (in a destructor, a
 * section, a callback), returns 0, and a thread of the library destroys the cache later. So it does
 * if objects of the cache's domain may be named, and a movable hazard pointer that this thread has
 * acquired names something. Live objects are reported then. For destructors of C++ and Rust, which
 * may run anywhere: a cache may belong to an object of another cache.
 */
PRUDENCE_API int prudence_cache_destroy_later(struct prudence_cache *cache);

/* ------------------------------------------------------------ objects of any size of one domain */

/*
 * Makes a family of caches, for objects of any size whose readers are in `domain`. (For NULL, the
 * default domain, prudence_malloc does the same.) A cache is made when an object of its size class
 * is first wanted; classes are those of prudence_malloc, and larger objects have pages of their
 * own. `name` is copied (up to 24 bytes). In statistics the caches are `name` and `name`-SIZE.
 * Thread-safe; not for signal handlers. Returns NULL with errno EINVAL (name NULL or empty;
 * reported), EAGAIN (the library is still starting; reported) or ENOMEM.
 */
struct prudence_sizes;
PRUDENCE_API struct prudence_sizes *prudence_sizes_create(const char *name,
                                                          struct prudence_domain *domain);

/*
 * Allocates `size` bytes as prudence_malloc does, also with size 0. Free the object by
 * prudence_free, or defer it by prudence_free_deferred, which find the domain. prudence_realloc may
 * move it to the default domain. Returns NULL with errno ENOMEM when there is no memory. Cost: a
 * nanosecond more than prudence_cache_alloc; the first of a size class makes a cache.
 */
PRUDENCE_API PRUDENCE_MALLOC PRUDENCE_SIZE2 void *prudence_sizes_alloc(struct prudence_sizes *sizes,
                                                                       size_t size);

/*
 * Destroys a family that no thread uses any more, as prudence_cache_destroy does each of its
 * caches, with the same errors. With an error the family is as usable as before. A later use is
 * reported.
 */
PRUDENCE_API int prudence_sizes_destroy(struct prudence_sizes *sizes);

/* --------------------------------------------------------------------------- the whole process */

/*
 * Shrinks every cache (prudence_cache_shrink) and purges unused pages. Never waits. Returns the
 * number of bytes that went.
 */
PRUDENCE_API size_t prudence_trim(void);

/*
 * Sets the option `name` to `value`, as PRUDENCE_OPTIONS="name=value,..." does at start. The
 * options are in docs/reference/options.md. Returns 0, or an error number, with a report on
 * standard error that names option and value: ENOENT if there is no such option, EINVAL if the
 * option cannot have that value, EBUSY if the option can be set only before the first allocation or
 * only in PRUDENCE_OPTIONS, if its present value cannot be taken back, or if a debugger calls this
 * in a thread that is inside the library. Threads set options one after the other. Not for signal
 * handlers.
 */
PRUDENCE_API int prudence_option_set(const char *name, const char *value);

/*
 * Returns whether the process's C++ operator delete is that of libprudence-malloc.so, which only
 * frees. Then a deferred free of an object is as good as deleting the object after a grace period,
 * if the object has no destructor. False if the program has an operator delete of its own, or if
 * the library cannot find out (a static program).
 */
PRUDENCE_API bool prudence_malloc_deletes(void);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_PRUDENCE_H */
