/* SPDX-License-Identifier: MIT */
/*
 * Private to scm/: what a thread that takes part in short-term memory is made of.
 *
 *   page        descriptors: objects that share an expiration date
 *   page_list   all descriptors of one date; or all that have expired
 *   scm_clock   its time, and a ring of lists: one for each date that has not expired
 *   scm_thread  a thread's clocks, and its expired descriptors
 *
 * Everything is its thread's alone, so nothing here takes a lock or an atomic read-modify-write; the
 * counts in slab/terms.h, which threads share, may. A scm_thread outlives its thread: it waits, under
 * scm_lock, for one that inherits it. Counters have one writer and are read by scm_get_mem_info.
 *
 * Invariants: every descriptor on a list of a clock or on an expired list stands for 1 in its object's
 * count. The descriptors of date d are in ring[d & mask], now <= d <= now + mask. A page on a list has
 * at least one descriptor that was not taken.
 */
#ifndef SCM_SCM_H
#define SCM_SCM_H

#include <errno.h>

#include <prudence/scm.h>

#include "base/list.h"
#include "heap/object.h"
#include "heap/options.h"
#include "slab/terms.h"

#define PAGE_BYTES   ((size_t)1024)
#define PAGE_OBJECTS ((PAGE_BYTES - 16) / sizeof(void *))

struct page {
    struct page *next;
    uint64_t count;
    void *objects[PAGE_OBJECTS];
};
_Static_assert(sizeof(struct page) == PAGE_BYTES, "no byte is wasted");

struct page_list {
    struct page *first, *last; /* both NULL when empty */
    uint64_t pages;
};

enum clock_kind { LOCAL_CLOCK, GLOBAL_CLOCK, USER_CLOCK, REAL_TIME_CLOCK };

struct scm_clock {
    uint64_t now;
    uint64_t mask;          /* lists - 1; a power of two less 1 */
    struct page_list *ring; /* NULL until the first date (mask is 0 then) */
    struct scm_thread *thread;
    enum clock_kind kind;
    bool adopted;    /* its thread has ended: it is ticked with the heir's local clock */
    uint64_t over;   /* adopted: the time at which all its dates have expired */
    uint64_t period; /* ns; real time: of one unit */
    uint64_t began;  /* ns; real time: when `now` was 0 */
    struct list link;
};

struct scm_counts {
    uint64_t dates;   /* descriptors ever made; those taken are below */
    uint64_t taken;   /* descriptors ever processed */
    uint64_t expired; /* descriptors ever expired */
    uint64_t became;  /* objects that got their first date */
    uint64_t ended;   /* objects whose last date was processed */
    uint64_t kept;    /* of these, not freed: their finalizer said so */
    int64_t pages;    /* descriptor pages now */
};

struct scm_thread {
    struct scm_clock local, global;
    struct page_list expired;
    uint64_t begin;  /* descriptors of the first expired page that are taken */
    bool collecting; /* a finalizer is running: what it calls does not collect */
    bool blocked;
    uint64_t phase;     /* of global time in which the thread has ticked last (gp_phases_tick) */
    struct list clocks; /* those that scm_clock_create made, and adopted ones */
    struct scm_counts counts;
    struct list link; /* in scm_threads or scm_orphans; scm_lock */
};

/* This thread's, while it takes part and is not blocked; NULL else. */
extern HIDDEN __thread struct scm_thread *scm_self __attribute__((tls_model("initial-exec")));

/* --- threads.c: coming and going. scm_enter is for who finds scm_self NULL: the thread's, newly
 * registered; NULL with *error set (and reported) when it is blocked, or there is no memory.
 * scm_refuse_absent is for calls that have nothing to do then: reports, and returns the error. --- */
struct scm_thread *scm_enter(const char *what, int *error);
int scm_refuse_absent(const char *what);
extern struct os_lock scm_lock;
extern struct list scm_threads, scm_orphans; /* in use; without a thread */
extern struct prudence_domain *scm_phases;   /* global time */
extern uint64_t scm_meta_bytes;              /* of threads, clocks, rings; atomic */
void *scm_meta_alloc(size_t bytes);
void scm_meta_free(void *meta, size_t bytes);

/* --- pages.c: descriptors --- */
bool pages_start(void);
struct prudence_cache *pages_cache(void);
struct page *page_add(struct scm_thread *thread, struct page_list *list);
void page_lists_join(struct page_list *to, struct page_list *from);

/* --- clock.c --- */
int clock_check(const struct scm_clock *clock, const char *what, struct scm_thread **self);
extern uint64_t (*scm_real_time)(void); /* ns; tests have their own */
bool clock_init(struct scm_clock *clock, struct scm_thread *thread, enum clock_kind kind);
void clock_release(struct scm_clock *clock);
bool clock_reach(struct scm_clock *clock, uint64_t extension);
void clock_advance(struct scm_clock *clock);
void clock_follow_time(struct scm_clock *clock);
void clock_end(struct scm_clock *clock);
void clock_adopt(struct scm_clock *clock);
void clocks_follow(struct scm_thread *thread, bool ticked);
struct scm_clock *clock_make(struct scm_thread *thread, enum clock_kind kind, uint64_t period);

/* --- expire.c --- */
#define TAKEN_PER_CALL 4 /* descriptors that a call processes, unless ticks do */
void expired_take(struct scm_thread *thread, uint64_t count);
int (*finalizer_of(unsigned number))(void *object); /* 1 to TERM_FINALIZERS */

static inline bool something_waits(const struct scm_thread *thread)
{
    return thread->expired.first != NULL;
}

/* A few of what has expired. */
static inline void collect_some(struct scm_thread *thread)
{
    if (something_waits(thread))
        expired_take(thread, TAKEN_PER_CALL);
}

/* Lazily, what the tick has expired is left to the calls after it, unless others wait already: so it looks
 * at nothing that is no longer in the processor's caches. `waiting`: before the tick. */
static inline void collect_after_tick(struct scm_thread *thread, bool waiting)
{
    if (load_relaxed(&option_scm_eager))
        expired_take(thread, UINT64_MAX);
    else if (waiting)
        expired_take(thread, TAKEN_PER_CALL);
}

#endif /* SCM_SCM_H */
