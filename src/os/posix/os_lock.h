/* SPDX-License-Identifier: MIT */
/*
 * A sleeping lock with a rank. Locks are taken in ascending rank. A thread that takes one out of order, or waits for
 * a grace period with one held, stops a debug build at once, so lock order inversions are found without a deadlock.
 *
 * Fork holds all locks from its prepare handler to its parent or child handler. Handlers of others may run in
 * between, on the forking thread, and may allocate. So locks held by fork let that thread through, to structures that
 * no other thread can touch in that time.
 */
#ifndef OS_POSIX_LOCK_H
#define OS_POSIX_LOCK_H

#include <pthread.h>

#include "base/atomic.h"
#include "base/base.h"
#include "slice.h"

/* Every lock of the library, in the order in which they may be taken. Node locks of different
 * nodes are never held together, save by fork, which takes them in one fixed order. */
enum os_lock_rank {
    OS_RANK_OPTIONS = 1, /* one thread sets options */
    OS_RANK_STRUCTURES,  /* writers of one of the program's tables */
    OS_RANK_URCU,        /* liburcu's workers */
    OS_RANK_SCM,
    OS_RANK_HEAP,
    OS_RANK_READERS,
    OS_RANK_STALL,     /* the program's hook; not held while it is called */
    OS_RANK_CALLBACKS, /* the lists of callback queues */
    OS_RANK_CALL_SET,  /* the set of queued heads */
    OS_RANK_CACHES,
    OS_RANK_NODE,
    OS_RANK_DEBUG, /* the guarded pool, the quarantine */
    OS_RANK_PAGES,
    OS_RANK_META,
    OS_RANK_COUNT,
};

struct os_lock {
    pthread_mutex_t mutex;
    enum os_lock_rank rank;
    bool held_by_fork; /* written by its holder */
};

#define OS_LOCK_INIT(lock_rank)                                                                    \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .rank = (lock_rank)                                    \
    }

/*
 * Whether this process is a copy that was made without fork's handlers, and nobody has noticed yet: then
 * mends what can be mended, and reports it, once. Made: it is one. See copy.c.
 */
extern HIDDEN uint32_t
    *os_copy_page; /* its first word is 0 in such a copy; NULL: nobody can tell */
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
void os_lock_destroy(struct os_lock *lock);

#ifdef PRUDENCE_DEBUG
void os_lock_note_taken(const struct os_lock *lock);
void os_lock_note_tried(const struct os_lock *lock); /* in any order: it cannot deadlock */
void os_lock_note_released(const struct os_lock *lock);
#else
static inline void os_lock_note_taken(const struct os_lock *lock)
{
    (void)lock;
}
static inline void os_lock_note_tried(const struct os_lock *lock)
{
    (void)lock;
}
static inline void os_lock_note_released(const struct os_lock *lock)
{
    (void)lock;
}
#endif

/* How many locks of the library this thread holds; always 0 without PRUDENCE_DEBUG. */
unsigned os_locks_held(void);

/* Spins a little before it sleeps: sections are a microsecond long, a sleep costs ten. */
void os_lock_take_contended(struct os_lock *lock);

/* This thread is between the prepare handler of a fork and the parent or child handler. */
extern HIDDEN __thread bool os_lock_forking __attribute__((tls_model("initial-exec")));

/*
 * How many locks and CPUs' caches this thread holds, or is just taking or releasing. Where it is not
 * 0, a signal handler that forks has interrupted the library itself, and must not wait for it. Meanwhile the
 * thread asks for a longer time slice, where the system has that.
 */
extern HIDDEN __thread unsigned os_busy __attribute__((tls_model("initial-exec")));

/* What of that fork holds while it lets this thread through; else 0. */
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
 * Before each call of a function that the program gave us (`what`: which): nothing of the library's is
 * held, no lock and no CPU's caches, so the function may use all of the library, block, and fork. Debug
 * builds stop where that is not so. Between fork's handlers the forking thread holds everything, and its
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

/* Of os_busy: what no other thread waits for. */
extern HIDDEN __thread unsigned os_hands __attribute__((tls_model("initial-exec")));

/*
 * Whether this thread holds nothing that another thread, or itself in an allocation, could wait for: no lock, no CPU's
 * caches, no carried objects. Only then does it call what the program may have replaced by a function of its own that
 * allocates, takes locks and waits: the functions of the C library that change mappings (mapping.c). Between fork's
 * handlers the forking thread holds everything, and its locks let it through.
 */
static inline bool os_holds_nothing(void)
{
    return os_busy == os_hands || os_lock_forking;
}

/* This thread is in such a call. An allocation or a free there gives nothing back to the system: the function would not see it. */
extern HIDDEN __thread bool os_in_mapping_call __attribute__((tls_model("initial-exec")));

/* Before each such call. Debug builds stop where something is held. */
#ifdef PRUDENCE_DEBUG
void os_mapping_call(void);
#else
static inline void os_mapping_call(void)
{
}
#endif

/*
 * Work that consists of such calls, and was found by a thread that holds something. `work` looks itself for what there is to do;
 * it is called by the first thread that comes to os_later_check with nothing held: as a rule by the thread that asked, at the end
 * of what it carries or has in hand (os_carry_end, os_hands_empty). Any number of requests before that make one call. A thread
 * that is at it already does not begin again, so work that allocates comes to an end.
 */
enum os_later { OS_LATER_PURGE, OS_LATER_PAGE_JOBS, OS_LATER_COUNT };
extern HIDDEN uint32_t os_later_wanted; /* a bit each; atomic */
void os_later(enum os_later what, void (*work)(void));
void os_later_run(void);
void os_later_fork_child(void); /* what another thread had begun is looked for again */

static inline void os_later_check(void)
{
    if (unlikely(load_relaxed(&os_later_wanted)))
        os_later_run();
}

/* From here to the leave this thread holds something that is counted: fork forgets what others hold, and a fork that
 * interrupts this takes nothing (as with os_busy). It may change mappings meanwhile. */
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

/*
 * This thread holds objects, on their way between a CPU's caches and a node: fork waits for that, or the child would
 * lose them. This works like a lock that any number of threads share, and that only fork and a walk over the heap take
 * whole, with the lock of the list of caches; its place is between that lock and those of nodes. So begin waits while a fork or a
 * step of a walk is under way, and try is for
 * callers that hold a node's lock already. May be nested. In between no thread waits for a grace period, or calls a
 * function of the program.
 */
void os_carry_begin(void);
bool os_carry_try(void);
void os_carry_end(void);
void os_carry_stop(void); /* waits until nobody carries, and nobody begins */
void os_carry_go_on(void);
void os_carry_forget_others(void); /* in a child: nobody but this thread carries, or is about to */

static inline bool os_lock_is_mine_by_fork(const struct os_lock *lock)
{
    return load_relaxed(&lock->held_by_fork) && os_lock_forking;
}

/* By fork's handlers only. A lock that came into being in between is not released. */
void os_lock_take_for_fork(struct os_lock *lock);
void os_lock_release_from_fork(struct os_lock *lock);

static inline void os_lock_take(struct os_lock *lock)
{
    os_busy_enter();
    os_lock_note_taken(lock);
    if (unlikely(pthread_mutex_trylock(&lock->mutex)))
        os_lock_take_contended(lock);
}

static inline bool os_lock_try(struct os_lock *lock)
{
    os_busy_enter();
    if (pthread_mutex_trylock(&lock->mutex) == 0) {
        os_lock_note_tried(lock);
        return true;
    }
    if (os_lock_is_mine_by_fork(lock))
        return true;
    os_busy_leave();
    return false;
}

static inline void os_lock_release(struct os_lock *lock)
{
    if (likely(!os_lock_is_mine_by_fork(lock))) {
        pthread_mutex_unlock(&lock->mutex);
        os_lock_note_released(lock);
    }
    os_busy_leave();
}

#endif /* OS_POSIX_LOCK_H */
