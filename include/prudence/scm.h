/* SPDX-License-Identifier: MIT */
/*
 * Short-term memory: objects with expiration dates, on the same allocator.
 *
 * An object lives until it is freed, or until it gets an expiration date. scm_refresh(object, e)
 * says that the object is needed for e more ticks of the calling thread's clock. From then on the
 * object is short-term memory. The program need not and may not free it; the library frees the
 * object when all dates have expired. A thread that needs the object for longer refreshes it before
 * that. The latest date counts. The model is from M. Aigner's "Short-term Memory for C" (2012;
 * "thesis" below), which calls an implementation self-collecting mutators, because the calls below
 * do all work and there is no other thread.
 *
 * Time. Each thread has a local clock (scm_tick), and any number of others (scm_clock_create). A
 * date d on a clock has expired when the clock is past d, so an object refreshed with extension e
 * expires at the (e + 1)th tick. Global time is for objects that threads share. Global time
 * advances when every thread that takes part, and is not blocked, has called scm_global_tick() at
 * least once since the last advance. A global refresh adds two units to the extension, so that all
 * threads have had the chance to refresh the object themselves.
 *
 * Taking part. A thread takes part from its first refresh, clock or region, or from
 * scm_register_thread, until it ends. Global time waits for each such thread, so a thread that is
 * going to block for long says so (scm_block_thread). A thread that takes no part has nothing to
 * tick; ticks are refused there, and reported the first time. (In the thesis a first tick registers
 * the thread. Then one tick in the wrong thread would hold up global time and memory, unseen and
 * for good.) So a thread that only uses objects that others refresh, and ticks, registers.
 *
 * Collection. Lazy (the default): a tick takes constant time, and each refresh, tick, scm_malloc or
 * scm_calloc frees a few of the objects that had expired before. Eager: a tick frees all of them.
 * See the options scm_collection, scm_max_extension and scm_expired in docs/reference/options.md.
 *
 * Step by step. No call's work grows with the number of objects, dates, clocks or ended threads, or
 * with the time that has passed on a real-time clock, except for eager ticks, scm_collect and
 * scm_get_mem_info. Long work is done in steps by the calls that follow, possibly a little later,
 * never earlier. (The first date that is further ahead than any before on its clock lengthens the
 * ring, in proportion to that extension.)
 *
 * Any object of this allocator can become short-term memory, at any time, whoever allocated it: by
 * prudence_malloc(), from a cache, or by malloc() when libprudence-malloc serves the program. An
 * object costs 8 bytes of metadata if any object of its slab ever had a date, otherwise none, and 8
 * bytes for each descriptor, in pages of 1 KiB. An object has one descriptor of the local or global
 * clock that refreshed the object first, however often that is, and one for each date of other
 * threads and clocks that has not expired.
 *
 * Conventions, in addition to <prudence/prudence.h>:
 *  - Functions that return int return 0, or an error number. A caller that ignores errors can rely
 *    on this: nothing has happened, and the object has the dates that it had before. Every error
 *    but ENOMEM is reported on standard error, too.
 *  - Misuse of pointers (foreign, interior, freed objects; an object that is freed or deferred
 *    while having dates) is reported and aborts the process. The library always sees that an object
 *    was freed under check=1, otherwise if the object is back in its slab or among the last few
 *    that were freed or deferred on the CPU.
 *  - Threads: a call works on the calling thread's clocks. Several threads may refresh an object at
 *    once, as long as the object cannot expire in between, because a date on the clock of the
 *    thread has not expired or because of global time.
 *  - Signals: not async-signal-safe. Costs: a refresh or lazy tick about ten nanoseconds, a refresh
 *    of an object that is short-term by this clock already about four, freeing one expired object
 *    about five. Where objects of a slab have dates, freeing another one by hand takes some ten
 *    nanoseconds more, and so does its first date afterwards.
 *  - Thread exit: a thread takes part until the last round (the fourth) of destructors of
 *    thread-specific data. Destructors that follow the library's own in that round may refresh. The
 *    thread takes part during each such call; scm_register_thread and clocks are refused there with
 *    EPERM.
 *  - Fork: the child's only thread keeps its clocks and dates, and inherits those that ended
 *    threads had. Objects that have dates of other threads stay for good in the child. Clocks
 *    of other threads are refused there.
 */
#ifndef PRUDENCE_SCM_H
#define PRUDENCE_SCM_H

#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------- allocating */

/*
 * Work like prudence_malloc, prudence_calloc and prudence_free (thesis, section 4.2.1); the first
 * two free a few expired objects before (see Collection above). scm_free is for objects without
 * dates. For a short-term object that is misuse.
 */
PRUDENCE_API PRUDENCE_MALLOC PRUDENCE_SIZE1 void *scm_malloc(size_t size);
PRUDENCE_API PRUDENCE_MALLOC PRUDENCE_SIZE12 void *scm_calloc(size_t count, size_t size);
PRUDENCE_API void scm_free(void *object);

/*
 * Works like prudence_realloc. If a short-term object has to move, the old one stays until all
 * dates have expired, and the new one has none: refresh or free it. prudence_realloc does the same.
 */
PRUDENCE_API PRUDENCE_KEEP PRUDENCE_SIZE2 void *scm_realloc(void *object, size_t size);

/* --------------------------------------------------------------------------------- refreshing */

/*
 * Gives `object` the expiration date (now + extension) of the thread's local clock. The object does
 * not expire before extension + 1 calls of scm_tick(). NULL is ignored. ERANGE: the extension is
 * beyond the option scm_max_extension; EPERM: the thread is blocked; ENOMEM; EOVERFLOW: the object
 * has 66 million dates already.
 */
PRUDENCE_API int scm_refresh(void *object, unsigned extension);

/*
 * Gives `object` a date of global time, the thread's global time + extension + 2. The object exists
 * at least until global time has advanced by extension + 1, and until every thread that takes part
 * could refresh it, too (thesis, sections 3.2.1 and 4.2.2). Errors as for scm_refresh.
 */
PRUDENCE_API int scm_global_refresh(void *object, unsigned extension);

/* --------------------------------------------------------------------------------------- time */

/*
 * Advances the thread's local clock by one, which expires every earlier date. EPERM: the thread is
 * blocked; EINVAL: the thread takes no part. The same errors apply to all calls below that advance
 * a clock.
 */
PRUDENCE_API int scm_tick(void);

/*
 * Says that the thread is ready to have global time advanced, which happens when the last thread
 * says so. A second call before that has no effect. The first advances the thread's own view of
 * global time, which expires dates of its global refreshes. EPERM, EINVAL.
 */
PRUDENCE_API int scm_global_tick(void);

/*
 * Frees all objects whose dates, given by this thread, have expired. In eager mode ticks do the
 * same. EPERM, EINVAL.
 */
PRUDENCE_API int scm_collect(void);

/* -------------------------------------------------------------------------------- more clocks */

/*
 * A clock of the thread that made it. Programs hold a handle, not an address. The handle ends when
 * the clock is destroyed, or when its thread ends or unregisters. The handle is never given out
 * again, and is refused from then on.
 */
struct scm_clock;

/*
 * Makes another clock of the calling thread, in addition to the local one. Returns NULL with errno
 * ENOMEM, or EPERM while the thread is blocked or ending. After the thread has ended, the clock's
 * dates expire by the local ticks of the thread that inherits them.
 */
PRUDENCE_API struct scm_clock *scm_clock_create(void);

/*
 * Makes a clock that follows real time. The unit is `period` milliseconds (1 to 86400000, else NULL
 * with EINVAL), and extensions on it are in milliseconds. An object does not expire before the
 * extension has passed, and expires at most two periods after that. The next calls of this thread
 * free expired objects: refreshes, ticks, scm_malloc, scm_calloc and scm_collect all read the time.
 * Each reads two of the thread's real-time clocks in turn (an eager tick and scm_collect read
 * all). All but ticks and scm_collect read a coarse clock, which is up to 10 ms behind. After the
 * thread has ended, ticks of any thread check them; then an object may expire a period later.
 */
PRUDENCE_API struct scm_clock *scm_clock_create_realtime(unsigned period);

/*
 * Work like scm_refresh and scm_tick on that clock. A tick does not advance a real-time clock, but
 * makes the clock read the time. EPERM: the clock belongs to another thread, or has ended. EINVAL:
 * NULL or never a clock; or the thread takes no part, so it has no clock.
 */
PRUDENCE_API int scm_clock_refresh(struct scm_clock *clock, void *object, unsigned extension);
PRUDENCE_API int scm_clock_tick(struct scm_clock *clock);

/*
 * Ends the clock, and expires all its dates. Lazily, the calls that follow free the objects a few
 * at a time, as after a tick. EPERM, EINVAL as above.
 */
PRUDENCE_API int scm_clock_destroy(struct scm_clock *clock);

/* ------------------------------------------------------------------------------------ threads */

/*
 * scm_register_thread makes the thread take part from now on, like its first refresh.
 * scm_unregister_thread ends that, like the thread's end. The dates, expired or not, are kept, also
 * those by the thread's clocks, whose handles end. The next thread that registers inherits the
 * dates, which then expire as that thread ticks. While none registers, each tick of any thread
 * takes over a little of them: a local tick takes dates of local and further clocks, a global tick
 * those by global time. Registering twice has no effect, nor has unregistering a thread that takes
 * no part. ENOMEM; EPERM: register of a thread that is ending (see Thread exit above), unregister
 * in a finalizer.
 */
PRUDENCE_API int scm_register_thread(void);
PRUDENCE_API int scm_unregister_thread(void);

/*
 * scm_block_thread takes the thread out for a while, as for a blocking call. Global time does not
 * wait for the thread, and the thread's clocks stand still. Before resuming, the thread may neither
 * refresh nor tick. A thread that resumes counts as one that has ticked already, unless it is the
 * only one that is not blocked. EPERM: block while blocked, resume while not; EINVAL: the thread
 * takes no part; ENOMEM from resume: the thread stays blocked.
 */
PRUDENCE_API int scm_block_thread(void);
PRUDENCE_API int scm_resume_thread(void);

/* --------------------------------------------------------------------------------- finalizers */

/* Number of finalizers that can be registered. */
#define SCM_FINALIZERS 32

/*
 * Registers a function that may be bound to objects. Returns its number, from 0, or -1 with errno
 * EINVAL (NULL) or ENOSPC (SCM_FINALIZERS are registered).
 */
PRUDENCE_API int scm_register_finalizer(int (*finalizer)(void *object));

/*
 * Binds a finalizer to `object` (-1: none). The calling thread alone must have the object, or know
 * that the object does not expire in between. After the last date, the thread that is about to free
 * the object calls the finalizer, in any of the calls above that may free. So the finalizer must
 * not want a lock that its thread then has. A finalizer may call anything but scm_free for the
 * object and return 0, and may end the thread, but not leave by longjmp. If the finalizer does not
 * return 0, the object stays: it then has no dates, and may be freed or refreshed (also by the
 * finalizer itself), and stays bound. EINVAL: there is no such number; ENOMEM.
 */
PRUDENCE_API int scm_set_finalizer(void *object, int number);

/* ------------------------------------------------------------------------------------ regions */

/*
 * A region is memory for many objects that end together. An allocation adds a few bytes to a
 * pointer, and one refresh dates all of the region. A region lives until the program unregisters it
 * or gives it a date, and from then on until all dates have expired, like an object. Then the
 * region ends with everything allocated there, and the handle is refused for ever. So a program
 * makes, fills and refreshes a region for each request:
 *
 *     struct scm_region *request = scm_region_create();
 *     scm_region_refresh(request, 0);       // all of it is needed until the next tick
 *     char *name = scm_region_alloc(request, 40);
 *
 * The thread that made the region allocates there, as long as the thread takes part. Any thread
 * that takes part may refresh the region, as with an object, while the region cannot expire. When
 * the thread has ended, the region stays. The dates are inherited like dates of objects. A region
 * without dates stays until some thread refreshes it and that date expires.
 *
 * Refreshing an object that was allocated in a region, by any of the functions above, refreshes the
 * region. Such an object has no finalizer; freeing, reallocating or asking for the usable size is
 * misuse and aborts the process.
 *
 * A region takes pages of 4 KiB, and of 32 KiB once it has eight pages. An object of more than 32
 * KiB minus 16 bytes has pages of its own. With the option scm_expired=deferred the pages are
 * deferred when the region ends. In the child of fork, regions of other threads are refused.
 */
struct scm_region;

/*
 * Makes a region without dates. The thread takes part from now on. Returns NULL with errno ENOMEM,
 * or EPERM if the thread is blocked or ending. Cost: about two allocations and frees of 4 KiB,
 * including the region's end.
 */
PRUDENCE_API struct scm_region *scm_region_create(void);

/*
 * Allocates `size` bytes (0 counts as 1) in the region, aligned to 16 bytes, not initialised.
 * No other thread may end the region during the call. Returns NULL with errno ENOMEM; EPERM: the
 * region has ended or was unregistered, has expired (as far as this thread's local clock shows), or
 * belongs to another thread, or the thread is blocked; EINVAL: NULL, never a region, or the thread
 * takes no part. Cost: about two nanoseconds; if a new page is needed, an allocation, after a few
 * expired objects are freed.
 */
PRUDENCE_API PRUDENCE_SIZE2 void *scm_region_alloc(struct scm_region *region, size_t size);

/*
 * Work like scm_refresh, scm_global_refresh and scm_clock_refresh for everything that was and will
 * be allocated in the region. EPERM: the region has ended; EINVAL: NULL, or never a region; or the
 * errors of those functions.
 */
PRUDENCE_API int scm_region_refresh(struct scm_region *region, unsigned extension);
PRUDENCE_API int scm_region_global_refresh(struct scm_region *region, unsigned extension);
PRUDENCE_API int scm_region_clock_refresh(struct scm_clock *clock, struct scm_region *region,
                                          unsigned extension);

/*
 * Stops allocations in the region. Without dates the region ends now, else with the last of them;
 * refreshing is still possible. Does nothing, and succeeds, if the region has ended; another thread
 * may end it during the call. EPERM: the region belongs to another thread; EINVAL: NULL, never a
 * region, or the thread takes no part.
 */
PRUDENCE_API int scm_region_unregister(struct scm_region *region);

/* ---------------------------------------------------------------------------------- statistics */

/*
 * Figures of the whole process, from counters that are kept anyway; exact if no call is in
 * progress. Objects count as in the allocator: whichever function allocated or freed them, with the
 * bytes that each takes. For regions the pages count, not the objects in them. Destroyed caches do
 * not count.
 */
struct scm_mem_info {
    unsigned long allocated;      /* bytes ever allocated */
    unsigned long freed;          /* bytes ever freed (large blocks: when their pages went) */
    unsigned long overhead;       /* bytes of descriptors, clocks and counts now */
    unsigned long num_alloc;      /* objects ever allocated */
    unsigned long num_freed;      /* objects ever freed */
    unsigned long num_short_term; /* objects with dates now, expired ones that wait included */
    unsigned long num_dates;      /* descriptors now */
    unsigned long num_expired;    /* dates seen to have expired, and not processed yet */
    unsigned long num_collected;  /* objects ever freed by their last date */
    unsigned long threads;        /* threads that take part now, blocked ones included */
};

/* Figures of regions. A region with dates is one short-term object above. */
struct scm_region_info {
    unsigned long regions; /* number that have not ended */
    unsigned long bytes;   /* bytes of their pages, and of ended ones that wait to be freed */
};

/*
 * Fill `info`, of which the program was compiled with `size` bytes (as in <prudence/stats.h>).
 * Return 0, or EINVAL for NULL. The functions without a size are for C and C++.
 */
PRUDENCE_API int scm_get_mem_info_sized(struct scm_mem_info *info, size_t size);
PRUDENCE_API int scm_get_region_info_sized(struct scm_region_info *info, size_t size);

static inline void scm_get_mem_info(struct scm_mem_info *info)
{
    scm_get_mem_info_sized(info, sizeof *info);
}

static inline void scm_get_region_info(struct scm_region_info *info)
{
    scm_get_region_info_sized(info, sizeof *info);
}

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_SCM_H */
