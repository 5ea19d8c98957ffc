/* SPDX-License-Identifier: MIT */
/*
 * Short-term memory: objects with expiration dates, on the same allocator.
 *
 * An object lives until it is freed, until it gets an expiration date: scm_refresh(object, e) says
 * that it is needed for e more ticks of the calling thread's clock. From then on it is short-term
 * memory: it need not and may not be freed; when all its dates have expired, it frees itself.
 * A thread that needs it for longer refreshes it before. The largest of its dates counts. The model is that of
 * M. Aigner's "Short-term Memory for C" (2012; "thesis" below), where an implementation of it is
 * called self-collecting mutators: all work is done by the calls below, there is no other thread.
 *
 * Time. Each thread has a local clock (scm_tick), and as many more as it likes (scm_clock_create).
 * A date d on a clock has expired when the clock is past d; so an object refreshed with extension e
 * expires at the (e + 1)th tick. Global time is for objects that threads share: it advances when
 * every thread that takes part, and is not blocked, has called scm_global_tick() at least once since
 * it last advanced. A global refresh adds two units to its extension, so that all threads have had the
 * chance to refresh the object themselves.
 *
 * Taking part. A thread takes part from its first refresh, or the first clock or region that it makes, on, or since it
 * said so (scm_register_thread), until it ends. So global time waits for each such thread: one that is
 * going to block for long says so (scm_block_thread). One that takes no part has nothing to tick: its
 * ticks are refused, and reported the first time. (The thesis lets a first tick register the thread. Then
 * one tick in the wrong thread would hold up global time, and with it memory, unseen and for good.) So a
 * thread that only uses what others refresh, and ticks, registers.
 *
 * Collection. Lazy (the default): a tick takes constant time, and each refresh, tick, scm_malloc or
 * scm_calloc frees a few of the objects that had expired before. Eager: a tick frees all of them. See the
 * options scm_collection, scm_max_extension and scm_expired in docs/reference/options.md.
 *
 * Step by step. Except eager ticks, scm_collect and scm_get_mem_info, no call's work grows with the number of
 * objects, dates, clocks or ended threads, or with the time that has passed on a real-time clock. What is
 * much is done in steps by the calls that come, so it may be done a little later, never earlier. (The first
 * date that is further ahead than any before on its clock lengthens the clock's ring, in proportion to that
 * extension.)
 *
 * Any object of this allocator can become short-term memory, at any time, whoever allocated it: by
 * prudence_malloc(), from a cache, or by malloc() when libprudence-malloc serves the program. It costs
 * an object 8 bytes of metadata if any object of its slab ever had a date, else nothing; and 8 bytes for each descriptor,
 * in pages of 1 KiB. An object has one descriptor of the local or global clock that refreshed it first, however often
 * that clock refreshes it; and one for each date of other threads and clocks that has not expired.
 *
 * Conventions, beside those of <prudence/prudence.h>:
 *  - Functions that return int: 0, or an error number. What a caller that ignores them may rely on:
 *    nothing has happened, and the object has the dates that it had before. Every error but ENOMEM
 *    is reported on standard error, too.
 *  - Misuse of pointers (foreign, interior, freed objects; an object that is freed or deferred while it
 *    has dates) is reported and aborts the process. That an object was freed already is seen for
 *    certain under check=1, else once it is back in its slab.
 *  - Threads: a call concerns the calling thread's clocks. An object may be refreshed by several
 *    threads at once, as long as it cannot expire meanwhile: because of a date that has not expired on
 *    the clock of the thread, or by global time.
 *  - Signals: not async-signal-safe. Cost: of a refresh or lazy tick about ten nanoseconds, of a refresh of an object that
 *    is short-term by this clock already about four; freeing one
 *    expired object takes about five.
 *  - Thread exit: a thread takes part until the last round (the fourth) of its destructors of thread-specific data.
 *    Those that come after the library's own in that round may refresh. The thread takes part for the time of each
 *    such call; scm_register_thread and clocks are refused there with EPERM.
 *  - Fork: the child's only thread goes on with its clocks and dates, and inherits what ended threads had
 *    left. Objects that have dates of other threads stay for good in the child, and clocks of other
 *    threads are refused there.
 */
#ifndef PRUDENCE_SCM_H
#define PRUDENCE_SCM_H

#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------- allocating */

/*
 * As prudence_malloc, prudence_calloc and prudence_free (thesis, section 4.2.1); the first two free a few
 * expired objects before (see Collection above). scm_free is for objects without dates: for a short-term
 * object it is misuse.
 */
PRUDENCE_API PRUDENCE_MALLOC void *scm_malloc(size_t size);
PRUDENCE_API PRUDENCE_MALLOC void *scm_calloc(size_t count, size_t size);
PRUDENCE_API void scm_free(void *object);

/*
 * As prudence_realloc. If a short-term object has to move, the old one stays until its dates have
 * expired, and the new one has none: it is to be refreshed or freed. So it is with prudence_realloc.
 */
PRUDENCE_API void *scm_realloc(void *object, size_t size);

/* --------------------------------------------------------------------------------- refreshing */

/*
 * Gives `object` the expiration date (now + extension) of the thread's local clock: it will not expire
 * before extension + 1 calls of scm_tick(). NULL is ignored. ERANGE: the extension is beyond the
 * option scm_max_extension; EPERM: the thread is blocked; ENOMEM; EOVERFLOW: the object has 66
 * million dates already.
 */
PRUDENCE_API int scm_refresh(void *object, unsigned extension);

/*
 * The same by global time: the date is the thread's global time + extension + 2. The object exists at
 * least until global time has advanced by extension + 1, and by so much that every thread that takes
 * part could refresh it, too (thesis, sections 3.2.1 and 4.2.2).
 */
PRUDENCE_API int scm_global_refresh(void *object, unsigned extension);

/* --------------------------------------------------------------------------------------- time */

/* Advances the thread's local clock by one, which expires every date before. EPERM: the thread is blocked;
 * EINVAL: it takes no part. So it is for all calls below that concern time that goes on. */
PRUDENCE_API int scm_tick(void);

/*
 * The thread is ready to have global time advanced; it is when the last thread says so. A second call
 * before it has advanced has no effect. The first advances the thread's own view of global time, which
 * expires dates of its global refreshes. EPERM, EINVAL.
 */
PRUDENCE_API int scm_global_tick(void);

/* Frees all objects whose dates, given by this thread, have expired; in eager mode ticks do. EPERM,
 * EINVAL. */
PRUDENCE_API int scm_collect(void);

/* -------------------------------------------------------------------------------- more clocks */

/*
 * Belongs to the thread that made it. What programs hold is a handle, not an address. It ends when the clock is
 * destroyed, or when its thread ends or unregisters; it is never given out again, and refused from then on.
 */
struct scm_clock;

/*
 * Another clock of the calling thread, besides its local one: NULL with errno ENOMEM, or EPERM while the
 * thread is blocked or ending. After its thread has ended, a clock's dates expire by the local ticks of
 * the thread that inherits them.
 */
PRUDENCE_API struct scm_clock *scm_clock_create(void);

/*
 * A clock that follows real time: its unit is `period` milliseconds (1 to 86400000, else NULL with
 * EINVAL), and extensions on it are in milliseconds. Objects expire not before so much time has passed,
 * and at most two periods after; they are freed by the calls of this thread that come then: refreshes, ticks,
 * scm_malloc, scm_calloc and scm_collect all look what time it is. Each looks at two of the thread's real-time
 * clocks in turn (an eager tick and scm_collect: at all), and all but ticks and scm_collect read a coarse
 * clock, which is up to 10 ms behind. If the thread has ended, ticks of any thread look; then an object may
 * expire a period later.
 */
PRUDENCE_API struct scm_clock *scm_clock_create_realtime(unsigned period);

/*
 * As scm_refresh and scm_tick, by that clock. A real-time clock is not advanced by a tick, but looks
 * what time it is. EPERM: it is another thread's, or no clock any more. EINVAL: NULL, or nothing that was ever a
 * clock; or the thread takes no part, so it has no clock.
 */
PRUDENCE_API int scm_clock_refresh(struct scm_clock *clock, void *object, unsigned extension);
PRUDENCE_API int scm_clock_tick(struct scm_clock *clock);

/* Ends the clock, and with it its time: all its dates have expired. Lazily, their objects are freed a few at a
 * time by the calls that follow, as after a tick. EPERM, EINVAL: as above. */
PRUDENCE_API int scm_clock_destroy(struct scm_clock *clock);

/* ------------------------------------------------------------------------------------ threads */

/*
 * register: the thread takes part from now on, as from its first refresh. unregister: it does
 * not any more; so it is when it ends. Its dates, expired or not, are kept, also those by its clocks, whose
 * handles end. The next thread that registers inherits them: they expire as that thread ticks. While
 * none registers, each tick of any thread takes over a little of them: a local tick of the dates by local and
 * further clocks, a global tick of those by global time. Registering twice has no effect, nor has
 * unregistering a thread that takes no part. ENOMEM; EPERM: the thread is ending (see Thread exit above).
 */
PRUDENCE_API int scm_register_thread(void);
PRUDENCE_API int scm_unregister_thread(void);

/*
 * The thread leaves for a while, as for a blocking call: global time does not wait for it, and its
 * clocks stand still. Until it resumes it may neither refresh nor tick. A thread that resumes counts
 * as one that has ticked already, unless it is the only one that is not blocked. EPERM: block while
 * blocked, resume while not; EINVAL: the thread takes no part.
 */
PRUDENCE_API int scm_block_thread(void);
PRUDENCE_API int scm_resume_thread(void);

/* --------------------------------------------------------------------------------- finalizers */

/* So many can be registered. */
#define SCM_FINALIZERS 32

/*
 * Registers a function that may be bound to objects; up to SCM_FINALIZERS. Returns its number, from 0,
 * or -1 with errno EINVAL (NULL) or ENOSPC.
 */
PRUDENCE_API int scm_register_finalizer(int (*finalizer)(void *object));

/*
 * Binds it to `object` (-1: none), by a thread that alone has the object or knows that it does not expire
 * meanwhile. It is called by the thread that is about to free the object after its last date, in any of
 * that thread's calls above that may free: so it may not want a lock that its thread has then. It may
 * call anything but scm_free for the object and return 0; it may end the thread, but not leave by longjmp. Unless it returns 0 the object stays: it has
 * no dates then, and may be freed or refreshed (also by the finalizer itself); it stays bound. EINVAL:
 * no such number; ENOMEM.
 */
PRUDENCE_API int scm_set_finalizer(void *object, int number);

/* ------------------------------------------------------------------------------------ regions */

/*
 * A region is memory for many objects that end together: allocating is the addition of a few bytes to a pointer, and
 * one refresh dates all of it. It lives until it is unregistered, until it gets a date; from then on until all its
 * dates have expired, as an object does. Then it ends, with all that was allocated in it, and its handle is refused
 * for ever. So a program makes a region for each request, fills it, and refreshes it:
 *
 *     struct scm_region *request = scm_region_create();
 *     scm_region_refresh(request, 0);       // all of it is needed until the next tick
 *     char *name = scm_region_alloc(request, 40);
 *
 * The thread that made it allocates in it, for as long as it takes part. Any thread that takes part may refresh it, as an
 * object: while it cannot expire. When its thread has ended, a region stays as it is: its dates are inherited as those of
 * objects are; one without dates stays until some thread refreshes it and that date expires.
 *
 * Refreshing an object that was allocated in a region, by any of the functions above, refreshes the region. It has no
 * finalizer; freeing it, reallocating it or asking for its usable size is misuse and aborts the process.
 *
 * A region takes pages of 4 KiB, and of 32 KiB when it has eight; an object of more than 32 KiB less 16 bytes has pages of
 * its own. With the option scm_expired=deferred they are deferred when the region ends. In the child of fork, regions of other
 * threads are refused.
 */
struct scm_region;

/* A new region, without dates. The thread takes part from now on. NULL with errno ENOMEM; EPERM: the thread is blocked
 * or ending. Cost: about two allocations and frees of 4 KiB, its end included. */
PRUDENCE_API struct scm_region *scm_region_create(void);

/*
 * `size` bytes (0 counts as 1) in the region, aligned to 16 bytes, not initialised. NULL with errno ENOMEM; EPERM: the
 * region has ended or was unregistered, it has expired (as far as this thread's local clock tells), it is another
 * thread's, or the thread is blocked; EINVAL: NULL, never a region, or the thread takes no part. Cost: about two
 * nanoseconds; where a new page is needed, that of an allocation, and a few expired objects are freed before.
 */
PRUDENCE_API void *scm_region_alloc(struct scm_region *region, size_t size);

/*
 * As scm_refresh, scm_global_refresh and scm_clock_refresh, of all that was and will be allocated in the region. EPERM: the
 * region has ended; EINVAL: NULL, or never a region; and what those return.
 */
PRUDENCE_API int scm_region_refresh(struct scm_region *region, unsigned extension);
PRUDENCE_API int scm_region_global_refresh(struct scm_region *region, unsigned extension);
PRUDENCE_API int scm_region_clock_refresh(struct scm_clock *clock, struct scm_region *region,
                                          unsigned extension);

/*
 * Nothing more is allocated in the region. If it has no dates it ends now, else with the last of them: it may still be
 * refreshed. Of a region that has ended this does nothing, and succeeds. EPERM: it is another thread's; EINVAL: NULL,
 * never a region, or the thread takes no part.
 */
PRUDENCE_API int scm_region_unregister(struct scm_region *region);

/* ---------------------------------------------------------------------------------- statistics */

/*
 * Of the whole process, from counters that are kept anyway; exact whenever no call is in progress.
 * Objects are counted as the allocator does: whatever function allocated or freed them, with the bytes
 * that each takes; of regions the pages count, not what is in them. Caches that were destroyed do not count.
 */
struct scm_mem_info {
    unsigned long allocated;      /* bytes ever allocated */
    unsigned long freed;          /* bytes ever freed (large blocks: when their pages went) */
    unsigned long overhead;       /* bytes of descriptors, clocks and counts now */
    unsigned long num_alloc;      /* objects ever allocated */
    unsigned long num_freed;      /* objects ever freed */
    unsigned long num_short_term; /* objects with dates now, expired ones that wait included */
    unsigned long num_dates;      /* descriptors now */
    unsigned long num_expired;    /* of these, seen to have expired, and not processed yet */
    unsigned long num_collected;  /* objects ever freed by their last date */
    unsigned long threads;        /* threads that take part now, blocked ones included */
};

PRUDENCE_API void scm_get_mem_info(struct scm_mem_info *info);

/* Likewise, of regions. One with dates is one short-term object above. */
struct scm_region_info {
    unsigned long regions; /* that have not ended */
    unsigned long bytes;   /* of their pages, and of those of ended ones that wait to be freed */
};

PRUDENCE_API void scm_get_region_info(struct scm_region_info *info);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_SCM_H */
