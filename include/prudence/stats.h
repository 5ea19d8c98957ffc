/* SPDX-License-Identifier: MIT */
/*
 * Statistics: the figures that the paper evaluates (sections 5.2 to 5.5), per cache and in total.
 *
 * Counting costs nothing on the fast paths, because their operation counts are part of words that
 * the fast paths write anyway. Figures are exact if no operation on the cache is in progress.
 * Otherwise each is a value that the figure had at some instant of the call.
 *
 * One of hundreds of caches shares slabs with others until it is used. Allocations, frees,
 * deferrals and live objects are then counted at the cache, and all else at the shared cache,
 * named `common-SIZE`.
 */
#ifndef PRUDENCE_STATS_H
#define PRUDENCE_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Figures of a cache. They count objects, slabs or events, unless the comment says bytes. */
struct prudence_cache_stats {
    char name[32];
    size_t object_size;       /* bytes, as given at creation */
    size_t object_stride;     /* bytes from one object to the next in a slab */
    size_t slab_size;         /* bytes of a slab's pages */
    size_t object_cache_size; /* objects in the largest object cache of all CPUs now */

    uint64_t allocations;
    uint64_t hits;             /* allocations served without the node */
    uint64_t hits_after_merge; /* hits that a merge at the miss made possible */
    uint64_t frees;
    uint64_t deferred_frees;

    uint64_t refills; /* number of times, slabs -> object cache */
    uint64_t refilled_objects;
    uint64_t flushes; /* number of times, object cache -> slabs */
    uint64_t flushed_objects;
    uint64_t object_cache_churns; /* pairs of a refill and a flush */
    uint64_t grows;               /* slabs, pages -> node */
    uint64_t shrinks;             /* slabs, node -> pages */
    uint64_t slab_churns;         /* pairs of a grow and a shrink */
    uint64_t merges; /* batches latent cache -> object cache, and latent slabs -> slab */
    uint64_t merged_objects;
    uint64_t preflushed_objects; /* latent cache -> latent slab in idle time */
    uint64_t overflowed_objects; /* latent cache -> latent slab because the latent cache was full */
    uint64_t premoved_slabs;     /* list changes because of objects that will be free */
    uint64_t busy_bypasses;      /* operations past the CPU's caches, owned or not there yet */
    uint64_t remote_drains;      /* quiet CPUs' caches drained by another CPU */
    uint64_t pressure_waits;     /* allocations that waited for a grace period instead of failing */

    uint64_t slabs_now;
    uint64_t slabs_peak;
    uint64_t objects_live;      /* allocated, neither freed nor deferred */
    uint64_t objects_latent;    /* deferred, with a grace period not known to be over */
    uint64_t objects_cached;    /* ready for reuse, in object caches or safe in latent caches */
    uint64_t bytes_latent;      /* objects_latent x object_stride; for large blocks, their pages */
    double total_fragmentation; /* f_t: slabs x slab size / (live objects x object size); 0: none */
    uint64_t bytes_cached;      /* objects_cached x object_stride */
};

/* Figures of the process. */
struct prudence_stats {
    uint64_t caches;
    uint64_t allocations, hits, hits_after_merge, frees, deferred_frees;
    uint64_t object_cache_churns, slab_churns, merges;
    uint64_t slabs_now;
    uint64_t slab_bytes; /* bytes of pages that slabs and large blocks hold now */
    uint64_t slab_bytes_peak;
    uint64_t retained_bytes; /* pages kept for reuse; prudence_trim purges them */
    uint64_t metadata_bytes; /* the library's own books; reserved, of which a part is resident */
    uint64_t objects_live, objects_latent;
    uint64_t bytes_latent;      /* all caches, added up */
    uint64_t bytes_latent_peak; /* never too low; counts bytes that CPUs had reserved, too */
    uint64_t limit;             /* the option, bytes; 0: none */
    uint64_t latent_limit;
    uint64_t pressure_waits;    /* allocations that waited instead of failing at once */
    uint64_t throttle_waits;    /* deferrals that waited because of latent_limit */
    uint64_t throttle_expiries; /* waits of both kinds that met wait_max */
    uint64_t latent_overruns;   /* times that deferrals passed latent_limit because they could not
                                   wait (inside a section, or after an expiry) */
    uint64_t
        call_bytes; /* objects whose callbacks wait in the default domain (<prudence/call.h>) */
    uint64_t call_waits;    /* callbacks whose caller was held back by call_limit or to keep pace */
    uint64_t call_expiries; /* call_waits that met wait_max */
    uint64_t call_overruns; /* callbacks past call_limit whose caller could not be held back */
    uint64_t grace_periods; /* of the default domain, completed */
    uint64_t grace_period_scans;
    uint64_t membarriers;
    uint64_t mode_switches; /* fenced to fence-free or back */
    uint64_t stalls;        /* readers reported for staying longer than stall_timeout */
    uint64_t readers; /* threads that have a reader slot in the default domain; when there are many,
                         a later call finds some that ended without a sign */
    char percpu[16];  /* "rseq" or "lock": how per-CPU caches are protected */
    char readers_mode[16];  /* "fence-free" or "fenced" now */
    char membarrier[16];    /* "available", or "missing": fenced readers for good */
    uint64_t bytes_cached;  /* all caches, added up */
    uint64_t cache_per_cpu; /* the options of these names, bytes */
    uint64_t cache_total;
    /*
     * Reason why percpu is "lock" (an option, the C library, or a kernel that does not restart
     * sequences), as text; otherwise "".
     */
    char percpu_reason[48];
    /*
     * Number of CPUs' caches that the last search for double frees, at the end of the process,
     * skipped, because other threads held them.
     */
    uint64_t doubles_passed_over;
    uint64_t
        latent_ceiling; /* bytes; latent_limit where the system does not report how readers run */
    uint64_t latent_limit_in_force; /* bytes; up to latent_ceiling while readers lack a CPU */
    uint64_t latent_rises;          /* times that this limit rose */
    /* Part of bytes_latent beyond the limit: objects that hazard pointers named at the last
     * check. */
    uint64_t bytes_named;
};

/* Figures of a domain. */
struct prudence_domain_stats {
    char name[32];
    /* "memb", "qsbr", "manual", "srcu", "set", "external" or "hazard" */
    char kind[16];
    uint64_t users;         /* caches and sets that name the domain */
    uint64_t readers;       /* threads that have a reader slot there */
    uint64_t grace_periods; /* completed */
    uint64_t scans;       /* searches of all readers, counters or members; foreign grace periods */
    uint64_t membarriers; /* memb and qsbr */
    uint64_t mode_switches; /* memb and qsbr: fenced to fence-free or back */
    uint64_t stalls;        /* reported */
    uint64_t bytes_called;  /* bytes of objects whose callbacks wait there (<prudence/call.h>) */
    uint64_t readers_inside;
    uint64_t longest_inside_ns; /* maximum of inside_ns of all readers, below */
};

/* Figures of a thread that reads in a domain. */
struct prudence_reader_stats {
    char thread_name[16]; /* name in the system now; "" if the thread has ended */
    char domain[32];
    int64_t thread;   /* the system's id (gettid) */
    uint64_t nesting; /* depth of sections; 0: outside; 1 if online in a qsbr domain */
    /*
     * Time that the section has kept a grace period from ending, since a waiting thread first found
     * the reader there. So this is shorter than the section, and 0 if no thread waits or the thread
     * is outside.
     */
    uint64_t inside_ns;
    uint64_t grace_periods_begun; /* since the section began; 0 outside */
    uint64_t frame_count;         /* entries in `frames`; 0 unless inside and stall_trace is set */
    void *frames[32];             /* return addresses, innermost first */
};

/*
 * Fill `stats`. Return 0, or EINVAL for NULL. Thread-safe. They take locks, so not for signal
 * handlers.
 *
 * The structures grow at their ends, so the caller passes the size that the program was compiled
 * with. It fills no more than that, and zeroes unknown members. A program that was compiled against
 * another version of this header therefore gets right figures from any version of the library.
 * Bindings of other languages call the functions with a size.
 */
PRUDENCE_API int prudence_stats_sized(struct prudence_stats *stats, size_t size);
PRUDENCE_API int prudence_cache_stats_sized(struct prudence_cache *cache,
                                            struct prudence_cache_stats *stats, size_t size);
PRUDENCE_API int prudence_domain_stats_sized(struct prudence_domain *domain,
                                             struct prudence_domain_stats *stats, size_t size);

/* In C++ a function with the name of a structure hides the constructor, which no thread calls. */
#if defined(__GNUC__) && defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

static inline int prudence_stats(struct prudence_stats *stats)
{
    return prudence_stats_sized(stats, sizeof *stats);
}

static inline int prudence_cache_stats(struct prudence_cache *cache,
                                       struct prudence_cache_stats *stats)
{
    return prudence_cache_stats_sized(cache, stats, sizeof *stats);
}

static inline int prudence_domain_stats(struct prudence_domain *domain,
                                        struct prudence_domain_stats *stats)
{
    return prudence_domain_stats_sized(domain, stats, sizeof *stats);
}

#if defined(__GNUC__) && defined(__cplusplus)
#pragma GCC diagnostic pop
#endif

/*
 * Visit all caches, domains or readers, one in each call, in the order in which they were made:
 *
 *     struct prudence_walk walk = PRUDENCE_WALK_INIT;
 *     struct prudence_cache_stats stats;
 *     while (prudence_next_cache(&walk, &stats) == 0)
 *         ...
 *
 * Each that exists during the whole walk is visited once. Those made or destroyed during it may be
 * visited. Nothing is held between two calls, so a walk may be given up, and the loop may call
 * anything. A call takes time in proportion to their number. Thread-safe if each thread has a walk
 * of its own. Takes locks, so not for signal handlers. Returns 0, ENOENT at the end, or EINVAL for
 * NULL.
 *
 * prudence_next_reader opens a file for the thread's name. Under stall_trace this interrupts a
 * thread that is inside by a signal, and waits up to 20 ms for the answer.
 */
struct prudence_walk {
    uint64_t after[3]; /* private: position of the walk */
};
#define PRUDENCE_WALK_INIT                                                                         \
    {                                                                                              \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

PRUDENCE_API int prudence_next_cache_sized(struct prudence_walk *walk,
                                           struct prudence_cache_stats *stats, size_t size);
PRUDENCE_API int prudence_next_domain_sized(struct prudence_walk *walk,
                                            struct prudence_domain_stats *stats, size_t size);
PRUDENCE_API int prudence_next_reader_sized(struct prudence_walk *walk,
                                            struct prudence_reader_stats *stats, size_t size);

static inline int prudence_next_cache(struct prudence_walk *walk,
                                      struct prudence_cache_stats *stats)
{
    return prudence_next_cache_sized(walk, stats, sizeof *stats);
}

static inline int prudence_next_domain(struct prudence_walk *walk,
                                       struct prudence_domain_stats *stats)
{
    return prudence_next_domain_sized(walk, stats, sizeof *stats);
}

static inline int prudence_next_reader(struct prudence_walk *walk,
                                       struct prudence_reader_stats *stats)
{
    return prudence_next_reader_sized(walk, stats, sizeof *stats);
}

enum prudence_stats_format {
    PRUDENCE_STATS_TEXT,
    PRUDENCE_STATS_JSON,
};

/*
 * Prints the summary of prudence_dump, totals, every cache that was ever used, every domain, every
 * reader and short-term memory to `file`, as text or as one JSON object (RFC 8259, UTF-8). JSON
 * shows U+FFFD for each byte of a name that is not UTF-8. Text, also in prudence_dump, shows '?'
 * for such a byte and for each control character. The locale does not matter. Does not allocate
 * memory of its own. Returns 0, or an error number: EINVAL, or the error of the stream.
 */
PRUDENCE_API int prudence_stats_print(FILE *file, enum prudence_stats_format format);

/*
 * Writes some ten lines about what holds memory to a file descriptor. They name the process, the
 * library's version and the time; how much is live, latent and cached; the caches with the most
 * latent bytes, and for each the reader that keeps grace periods from ending; the caches with the
 * most live bytes. The option dump=SIGUSR2 makes that signal do the same.
 *
 * Async-signal-safe: allocates nothing, and takes locks only if this thread is not inside the
 * library already. If the thread is (and this is a handler that interrupted it there), the lines
 * say so, and name no cache. Needs less than 5 KB of stack. Not a cancellation point; errno is
 * kept. Returns 0, or the error number of the first write that failed, including EPIPE and EFBIG,
 * because neither SIGPIPE nor SIGXFSZ is delivered.
 */
PRUDENCE_API int prudence_dump(int fd);

/*
 * Writes the sampled heap profile to the file `path`, which is created with mode 0600 or
 * overwritten. For each calling place the profile has the memory in use, allocated, latent and
 * deferred, and how long objects lived or waited for their grace period. prudence-profile(1) shows
 * the profile and converts it to pprof's format. The profile begins when the option `profile` is
 * set. The options profile_file and profile_signal write the profile at exit and at a signal. A
 * child of fork inherits the profile so far, because the child inherits the memory.
 *
 * Async-signal-safe: no lock, no allocation. Not a cancellation point; errno is kept. Costs some
 * microseconds for each calling place. Returns 0, or an error number: EINVAL (`path` is NULL),
 * ENODATA (nothing is sampled), EWOULDBLOCK (another thread or process is writing that file), ENXIO
 * (a FIFO that no thread reads), ELOOP (a symbolic link on the path belongs neither to the
 * process's user nor to root, and is not followed; or there are more than 40), ENAMETOOLONG (more
 * than 2,047 bytes after a link), or the error of the open or the first write that failed, as for
 * prudence_dump.
 */
PRUDENCE_API int prudence_profile_dump(const char *path);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_STATS_H */
