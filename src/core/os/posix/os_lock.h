/* SPDX-License-Identifier: MIT */
/*
 * A sleeping lock with a rank. Locks are taken in ascending rank. A debug build stops a thread that
 * takes one out of order, or that waits for a grace period with one held, so lock order inversions
 * are found without a deadlock.
 *
 * A thread that waits for long lends its priority to the holder, so that a real-time thread does
 * not wait until an ordinary holder gets a CPU (lock.c). So the lock is not pthread's: its word
 * names the holder from the first moment to the last.
 *
 * Fork holds all locks from the prepare handler to the parent or child handler. Handlers of other
 * libraries may run in between, on the forking thread, and may allocate. So locks held by fork let
 * that thread through, to structures that no other thread can touch in that time.
 */
#ifndef OS_POSIX_LOCK_H
#define OS_POSIX_LOCK_H

#include "base/atomic.h"
#include "base/base.h"
#include "slice.h"

/* Every lock of the library, in the order in which they may be taken. No thread holds the locks
 * of two nodes at once, except fork, which takes them in one fixed order. */
enum os_lock_rank {
    OS_RANK_OPTIONS = 1, /* serializes threads that set options */
    OS_RANK_STRUCTURES,  /* writers of one of the program's tables */
    OS_RANK_URCU,        /* liburcu's workers */
    OS_RANK_SCM,
    OS_RANK_HEAP,
    OS_RANK_READERS,
    OS_RANK_STALL,     /* protects the program's hook; not held while that runs */
    OS_RANK_LOOK,      /* a search for the names of retired objects */
    OS_RANK_RETIRED,   /* the lists of retired objects */
    OS_RANK_CALLBACKS, /* the lists of callback queues */
    OS_RANK_CALL_SET,  /* the set of queued heads */
    OS_RANK_CACHES,
    OS_RANK_NODE,
    OS_RANK_HANDS, /* the lists of objects whose destructors run */
    OS_RANK_DEBUG, /* the guarded pool, the quarantine */
    OS_RANK_PAGES,
    OS_RANK_META,
    OS_RANK_COUNT,
};

struct os_lock {
    uint32_t word; /* the holder's id, or 0, and OS_LOCK_AWAITED; atomic */
    enum os_lock_rank rank;
    bool held_by_fork; /* written by the holder */
};

#define OS_LOCK_AWAITED (UINT32_C(1) << 31) /* a thread may sleep until the release */

#define OS_LOCK_INIT(lock_rank)                                                                    \
    {                                                                                              \
        .rank = (lock_rank)                                                                        \
    }

/*
 * os_copy_is_unnoticed returns whether this process is a copy made without fork's handlers that no
 * thread has noticed yet. os_copy_check then repairs as much as possible and reports the copy,
 * once; os_copy_made returns afterwards that this process is one. See copy.c.
 */
extern HIDDEN uint32_t
    *os_copy_page; /* first word is 0 in such a copy; NULL if copies cannot be detected */
extern HIDDEN bool os_copy_made;
void os_copy_check_slow(void);

static inline bool os_copy_is_unnoticed(void)
{
    const uint32_t *page = load_relaxed(&os_copy_page);

    return unlikely(page && !load_relaxed(page));
}

static inline void os_copy_check(void)
{
    if (os_copy_is_unnoticed())
        os_copy_check_slow();
}

void os_lock_init(struct os_lock *lock, enum os_lock_rank rank);
static inline void os_lock_destroy(struct os_lock *lock)
{
    (void)lock;
}

/* Returns how many locks of the library this thread holds; always 0 without PRUDENCE_DEBUG. */
unsigned os_locks_held(void);

uint32_t os_lock_id_find(void); /* returns this thread's id, as locks name it */
/* Called in a child, where this thread has another id and no thread waits. */
void os_lock_fork_child(void);

/* Set in the forking thread between the prepare handler and the parent or child handler. */
extern HIDDEN __thread bool os_lock_forking __attribute__((tls_model("initial-exec")));

/*
 * Number of locks and CPUs' caches that this thread holds, or is just taking or releasing. If this
 * is not 0, a signal handler that forks has interrupted the library itself and must not wait for
 * it. Until the number returns to 0, the thread asks for a longer time slice if the system has
 * them.
 */
extern HIDDEN __thread unsigned os_busy __attribute__((tls_model("initial-exec")));

/* Part of os_busy that a fork holds while fork's locks let this thread through; else 0. */
extern HIDDEN __thread unsigned os_busy_of_fork __attribute__((tls_model("initial-exec")));

static inline void os_busy_enter(void)
{
    if (os_busy++ == 0 && unlikely(load_relaxed(&os_slices)))
        os_slice_ask();
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void os_busy_leave(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (--os_busy == 0 && unlikely(load_relaxed(&os_slices)))
        os_slice_done();
}

/*
 * Called before each call of a function that the program gave us; `what` names it. Debug builds
 * stop unless the thread holds no lock and no CPU's caches, so the function may use all of the
 * library, block, and fork. Between fork's handlers the forking thread holds everything, and its
 * locks let it through.
 */
#ifdef PRUDENCE_DEBUG
void os_foreign_call(const char *what);
#else
static inline void os_foreign_call(const char *what)
{
    (void)what;
}
#endif

/* Part of os_busy that no other thread waits for. */
extern HIDDEN __thread unsigned os_hands __attribute__((tls_model("initial-exec")));

/*
 * Returns whether this thread holds nothing that another thread, or itself in an allocation, could
 * wait for: no lock, no CPU's caches, no slab cache, no carried objects. Only then may it call the
 * C library's functions that change mappings (mapping.c), because the program may have replaced
 * them by functions that allocate, take locks and wait. Between fork's handlers the forking thread
 * holds everything, and its locks let it through.
 */
static inline bool os_holds_nothing(void)
{
    return os_busy == os_hands || os_lock_forking;
}

/* Set while this thread is in such a call. Allocations and frees there purge nothing, because
 * the program's function would not see the calls. */
extern HIDDEN __thread bool os_in_mapping_call __attribute__((tls_model("initial-exec")));

/* Called before each such call. Debug builds stop if the thread holds something. */
#ifdef PRUDENCE_DEBUG
void os_mapping_call(void);
#else
static inline void os_mapping_call(void)
{
}
#endif

/*
 * Defers work that consists of such calls and was found by a thread that holds something. The first
 * thread that reaches os_later_check with nothing held calls `work`, which itself searches for
 * things to do. That is usually the thread that asked, at the end of os_in_flight_end, os_visit_end
 * or os_hands_empty. Several requests before that make one call. A thread inside `work` does not
 * start again, so work that allocates comes to an end.
 */
enum os_later { OS_LATER_PURGE, OS_LATER_PAGE_JOBS, OS_LATER_ADVICE, OS_LATER_COUNT };
extern HIDDEN uint32_t os_later_wanted; /* one bit per kind; atomic */
void os_later(enum os_later what, void (*work)(void));
void os_later_run(void);
void os_later_fork_child(void); /* requests again work that another thread had begun */

static inline void os_later_check(void)
{
    if (unlikely(load_relaxed(&os_later_wanted)))
        os_later_run();
}

/* From here to os_hands_empty this thread holds something that a counter tracks. A fork's child
 * forgets the holds of other threads, and a fork that interrupts this thread takes nothing, as
 * with os_busy. The thread may still change mappings. */
static inline void os_hands_full(void)
{
    os_busy_enter();
    os_hands++;
}

static inline void os_hands_empty(void)
{
    os_hands--;
    os_busy_leave();
    os_later_check();
}

/* Between these this thread holds a slab cache, whose destruction waits for it. So it changes no
 * mapping. Nor does a fork that interrupts it take anything, because the child of one that does
 * forgets all such holds. */
static inline void os_visit_begin(void)
{
    os_busy_enter();
}

static inline void os_visit_end(void)
{
    os_busy_leave();
    os_later_check();
}

/* Returns whether a thread that visits one cache holds nothing else. */
static inline bool os_only_visits(void)
{
    return os_busy == os_hands + 1 || os_lock_forking;
}

/*
 * Marks that this thread has objects in flight: on their way between a CPU's caches and a node.
 * Fork waits for that; otherwise the child would lose them. This works like a lock that any number
 * of threads share, and that only fork and a walk over the heap take whole, together with the lock
 * of the list of caches. It ranks between that lock and the node locks. So os_in_flight_begin waits
 * while a fork or a step of a walk is under way, and os_in_flight_try is for callers that already
 * hold a node's lock. Calls may be nested. In between the thread neither waits for a grace period
 * nor calls a function of the program.
 */
void os_in_flight_begin(void);
bool os_in_flight_try(void);
void os_in_flight_end(void);
void os_in_flight_stop(void); /* waits until no thread carries, and lets none begin */
void os_in_flight_go_on(void);
void os_in_flight_forget_others(void); /* in a child, where only this thread can still carry */

/* Called only by fork's handlers. A lock created between the two calls is not released. */
void os_lock_take_for_fork(struct os_lock *lock);
void os_lock_release_from_fork(struct os_lock *lock);

void os_lock_take(struct os_lock *lock);
bool os_lock_try(struct os_lock *lock);
void os_lock_release(struct os_lock *lock);

#endif /* OS_POSIX_LOCK_H */
