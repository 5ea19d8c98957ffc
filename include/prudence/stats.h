/* SPDX-License-Identifier: MIT */
/*
 * Statistics: exactly what the paper evaluates (sections 5.2 to 5.5), per cache and in total.
 *
 * Counting costs nothing on the fast paths: their operation counts ride on words that they write
 * anyway. Figures are exact whenever no operation on the cache is in progress, else each is a value
 * that it had at some instant of the call.
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

/* Of a cache. Numbers of objects, slabs and events, unless it says bytes. */
struct prudence_cache_stats {
    char name[32];
    size_t object_size;       /* bytes, as asked for at creation */
    size_t object_stride;     /* bytes from one object to the next in a slab */
    size_t slab_size;         /* bytes of a slab, its pages */
    size_t object_cache_size; /* objects: the largest of all CPUs' object caches now */

    uint64_t allocations;
    uint64_t hits;             /* allocations served without the node */
    uint64_t hits_after_merge; /* of these, those that a merge at the miss made possible */
    uint64_t frees;
    uint64_t deferred_frees;

    uint64_t refills; /* times, slabs -> object cache */
    uint64_t refilled_objects;
    uint64_t flushes; /* times, object cache -> slabs */
    uint64_t flushed_objects;
    uint64_t object_cache_churns; /* pairs of a refill and a flush */
    uint64_t grows;               /* slabs, pages -> node */
    uint64_t shrinks;             /* slabs, node -> pages */
    uint64_t slab_churns;         /* pairs of a grow and a shrink */
    uint64_t merges; /* batches latent cache -> object cache, and latent slabs -> slab */
    uint64_t merged_objects;
    uint64_t preflushed_objects; /* latent cache -> latent slab in idle time */
    uint64_t overflowed_objects; /* latent cache -> latent slab: the latent cache was full */
    uint64_t premoved_slabs;     /* list changes for what will be free */
    uint64_t busy_bypasses;      /* operations that found their CPU's caches owned by another */
    uint64_t remote_drains;      /* quiet CPUs' caches emptied by another CPU */
    uint64_t pressure_waits;     /* allocations that waited for a grace period before failing */

    uint64_t slabs_now;
    uint64_t slabs_peak;
    uint64_t objects_live;   /* allocated, neither freed nor deferred */
    uint64_t objects_latent; /* deferred; their grace period is not over, as far as is known */
    uint64_t
        objects_cached;    /* ready to be used again: in object caches, or safe in latent caches */
    uint64_t bytes_latent; /* of these: objects_latent x object_stride; large blocks: their pages */
    double total_fragmentation; /* f_t: slabs x slab size / (live objects x object size); 0: none */
    uint64_t bytes_cached;      /* objects_cached x object_stride */
};

/* Of the process. */
struct prudence_stats {
    uint64_t caches;
    uint64_t allocations, hits, hits_after_merge, frees, deferred_frees;
    uint64_t object_cache_churns, slab_churns, merges;
    uint64_t slabs_now;
    uint64_t slab_bytes; /* bytes of pages that slabs and large blocks hold now */
    uint64_t slab_bytes_peak;
    uint64_t retained_bytes; /* pages kept for reuse, given back by prudence_trim */
    uint64_t metadata_bytes;
    uint64_t objects_live, objects_latent;
    uint64_t bytes_latent;      /* all caches, added up */
    uint64_t bytes_latent_peak; /* never below the truth: what CPUs had reserved counts too */
    uint64_t limit;             /* the option, bytes; 0: none */
    uint64_t latent_limit;
    uint64_t pressure_waits;    /* allocations that waited before failing */
    uint64_t throttle_waits;    /* deferrals that waited because of latent_limit */
    uint64_t throttle_expiries; /* of both, those that met wait_max */
    uint64_t latent_overruns;   /* times that garbage passed latent_limit: deferrals that could not
                                   wait, inside a section or after an expiry */
    uint64_t
        call_bytes; /* objects whose callbacks wait in the default domain (<prudence/call.h>) */
    uint64_t call_waits; /* callbacks whose caller was held back, by call_limit or to keep pace */
    uint64_t call_expiries; /* of these, those that met wait_max */
    uint64_t call_overruns; /* callbacks past call_limit whose caller could not be held back */
    uint64_t grace_periods; /* of the default domain, completed */
    uint64_t grace_period_scans;
    uint64_t membarriers;
    uint64_t mode_switches; /* fenced to fence-free or back */
    uint64_t stalls;        /* readers reported for staying longer than stall_timeout */
    uint64_t readers; /* threads that have a reader slot in the default domain; of many, some that
                               ended without a sign are found by a later call */
    char percpu[16];  /* "rseq" or "lock": how per-CPU caches are protected */
    char readers_mode[16];  /* "fence-free" or "fenced" now */
    char membarrier[16];    /* "available", or "missing": fenced readers for good */
    uint64_t bytes_cached;  /* all caches, added up */
    uint64_t cache_per_cpu; /* the options of these names, bytes */
    uint64_t cache_total;
    /* Why percpu is "lock", as text: an option, the C library, or that the kernel does not restart sequences; else "". */
    char percpu_reason[48];
    /* CPUs' caches in which the last look for double frees, when the process ends, did not look, because other threads
     * held them. */
    uint64_t doubles_passed_over;
};

/* Of a domain. */
struct prudence_domain_stats {
    char name[32];
    char kind[16];          /* "memb", "qsbr", "manual", "srcu", "set" or "external" */
    uint64_t users;         /* caches and sets that name it */
    uint64_t readers;       /* threads that have a reader slot in it */
    uint64_t grace_periods; /* completed */
    uint64_t scans;       /* looks at all readers, or counters, or members; foreign grace periods */
    uint64_t membarriers; /* memb and qsbr */
    uint64_t mode_switches; /* memb and qsbr: fenced to fence-free or back */
    uint64_t stalls;        /* reported */
    uint64_t bytes_called;  /* objects whose callbacks wait in it (<prudence/call.h>) */
    uint64_t readers_inside;
    uint64_t longest_inside_ns; /* of all readers' inside_ns, below */
};

/* A thread that reads in a domain. */
struct prudence_reader_stats {
    char thread_name[16]; /* as the system knows it now; "": it has ended */
    char domain[32];
    int64_t thread;   /* the system's id (gettid) */
    uint64_t nesting; /* sections that it is inside of; 0: outside. Online in a qsbr domain: 1 */
    /* How long its section has kept a grace period from ending: since a thread that waited for one first found it there.
     * So it is shorter than the section, and 0 if nobody waits, or the thread is outside. */
    uint64_t inside_ns;
    uint64_t grace_periods_begun; /* since the section began; 0 outside */
    uint64_t frame_count;         /* where the thread is, innermost call first: if it is inside */
    void *frames[32];             /* and the option stall_trace is set */
};

/*
 * Each fills `stats`. Returns 0, or EINVAL for NULL. Thread-safe; takes locks, so not in signal handlers.
 *
 * The structures grow at their ends. So the library is told the size that the program was compiled with:
 * it fills no more than that, and zeroes what it does not know. A program that was compiled against
 * another version of this header therefore gets right figures from any version of the library. Bindings
 * of other languages call the functions with a size.
 */
PRUDENCE_API int prudence_stats_sized(struct prudence_stats *stats, size_t size);
PRUDENCE_API int prudence_cache_stats_sized(struct prudence_cache *cache,
                                            struct prudence_cache_stats *stats, size_t size);
PRUDENCE_API int prudence_domain_stats_sized(struct prudence_domain *domain,
                                             struct prudence_domain_stats *stats, size_t size);

/* In C++ a function of a structure's name hides its constructor, which nobody calls. */
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
 * All caches, domains, or readers, one at each call, in the order in which they were made:
 *
 *     struct prudence_walk walk = PRUDENCE_WALK_INIT;
 *     struct prudence_cache_stats stats;
 *     while (prudence_next_cache(&walk, &stats) == 0)
 *         ...
 *
 * What is there during the whole walk is visited once; what is made or destroyed meanwhile may be visited. Nothing is
 * held between two calls, so a walk may be given up, and the loop may call anything. A call takes time in proportion to
 * how many there are. Thread-safe, if each thread has a walk of its own; takes locks, so not in signal handlers. Returns
 * 0, ENOENT at the end, or EINVAL for NULL.
 *
 * prudence_next_reader opens a file for the thread's name; with stall_trace it interrupts a thread that is inside by a
 * signal, and waits for up to 20 ms for its answer.
 */
struct prudence_walk {
    uint64_t after[3]; /* private: where the walk is */
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
 * Prints the summary of prudence_dump, then totals, every cache that was ever used, every domain, every reader and
 * short-term memory to `file`, as text or as one JSON object (RFC 8259, UTF-8; a byte of a name that is not UTF-8 becomes
 * U+FFFD). As text a name has '?' for such a byte and for each control character, also in prudence_dump. The locale does not matter. Does not allocate of its own. Returns 0, or an error number: EINVAL, or that of
 * the stream.
 */
PRUDENCE_API int prudence_stats_print(FILE *file, enum prudence_stats_format format);

/*
 * Writes to a file descriptor, in some ten lines, what holds memory: the process, the library's version and the time; how
 * much is live, latent and cached; the caches with the most latent bytes, and for each the reader that keeps its grace
 * periods from ending; the caches with the most live bytes. The option dump=SIGUSR2 makes that signal do the same.
 *
 * Async-signal-safe: it does not allocate, and takes locks only if this thread is not inside the library already. If it
 * is (a handler that has interrupted it there), the lines say so, and name no cache. It needs less than 5 KB of stack. It is no
 * cancellation point, and keeps errno. Returns 0, or the error number of the first write that failed: EPIPE and EFBIG as well, because
 * neither SIGPIPE nor SIGXFSZ is delivered for it.
 */
PRUDENCE_API int prudence_dump(int fd);

/*
 * Writes the sampled heap profile to the file `path`, which is made with mode 0600 or overwritten: by calling place, what is
 * in use, what was allocated, what is latent and was deferred, and how long objects lived or waited for their grace period.
 * prudence-profile(1) shows it, and turns it into what pprof reads. There is a profile when the option `profile` was set
 * before the first allocation. The options profile_file and profile_signal write it at exit and at a signal. A child of fork has
 * the profile so far as its own, since it has the memory, too.
 *
 * Async-signal-safe: no lock, no allocation; no cancellation point; keeps errno. Cost: some microseconds a calling place. Returns 0, or
 * an error number: EINVAL (`path` is NULL), ENODATA (nothing is sampled), EWOULDBLOCK (another thread or process is writing that
 * file), ENXIO (a FIFO that nobody reads), ELOOP (a symbolic link on the path belongs to another user than the process's and root,
 * and is not followed; or there are more than 40), ENAMETOOLONG (more than 2,047 bytes behind a link), or that of the open or the first write that failed, as prudence_dump.
 */
PRUDENCE_API int prudence_profile_dump(const char *path);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_STATS_H */
